"""Scenarios whose load follows the engine: closed loops, and a rate that a concurrency limit holds back."""

from __future__ import annotations

from random import Random

from servetop.core.config import StageConfig
from tests.judgement.hard_loads import any_base
from tests.judgement.machines import plan_of
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.shown_truth import shown


def held_rate(random: Random, name: str) -> Scenario | None:
    """Draw a rate that `--max-concurrency` does not let through, at an engine that would serve it."""
    base = any_base(random)
    if base is None:
        return None
    limit, rate = random.choice((2, 3, 4, 8)), random.uniform(0.3, 0.9) * base.saturated
    stage = StageConfig(request_rate=rate, max_concurrency=limit, duration=random.choice((20.0, 40.0, 60.0)))
    found = shown(plan_of(base, name, (stage,)), kind="held by a limit", base=base)
    return found if found.truth.cause is Cause.CONCURRENCY else None


def closed_loop(random: Random, name: str) -> Scenario | None:
    """Draw 4 to 96 users who each wait for their response, with or without a queue in the engine."""
    base = any_base(random)
    if base is None:
        return None
    stage = StageConfig(max_concurrency=random.choice((4, 8, 16, 32, 48, 96)), duration=random.choice((30.0, 60.0)))
    return shown(plan_of(base, name, (stage,)), kind="closed loop", base=base)
