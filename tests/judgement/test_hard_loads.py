"""Draws near and beyond what simple loads show, with the truth that their runs show."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from servetop.analysis.diagnosis.run_verdict import RunCause
from tests.judgement.hard_loads import constant
from tests.judgement.judged import JudgedScenario
from tests.judgement.kinds import scenario
from tests.judgement.known_truth import KnownTruth
from tests.judgement.machines import plan_of
from tests.judgement.overloads import batch_base
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.shown_truth import shown

SEED = 22


@pytest.fixture(scope="module")
def piled_up() -> Scenario:
    return scenario("large-batch", 0, seed=SEED)


def test_requests_pile_up_in_a_large_batch(piled_up: Scenario) -> None:
    known = KnownTruth(piled_up)
    assert piled_up.plan.spec.batch_limit >= 512
    assert piled_up.truth.cause in (Cause.RATE, Cause.BATCH, Cause.KV, Cause.UNCLEAR)
    assert known.kept_at(known.last_rate) is False
    assert known.state.running.max() > 50


def test_a_held_rate_waits_at_the_client_and_not_in_the_engine() -> None:
    held = scenario("held", 0, seed=SEED)
    known = KnownTruth(held)
    assert held.truth.cause is Cause.CONCURRENCY
    assert known.state.held
    assert known.state.in_flight.max() <= 8
    assert not known.state.harmful_queues


def test_a_cold_cache_becomes_warm() -> None:
    cold = scenario("cold-cache", 0, seed=SEED)
    samples = [tick.engine for tick in cold.run.ticks if tick.engine]
    hits = np.diff([(each.prefix_cache_hits_total or 0.0) for each in samples[:: len(samples) // 4]])
    queries = np.diff([(each.prefix_cache_queries_total or 0.0) for each in samples[:: len(samples) // 4]])
    assert (hits / queries)[0] + 0.1 < (hits / queries)[-1]


def test_an_objective_on_tpot_counts_for_the_rates_that_are_kept() -> None:
    each = scenario("tpot", 0, seed=SEED)
    assert each.base is not None
    assert math.isfinite(each.base.tpot)
    assert each.plan.config.goodput == {"ttft": each.base.objective, "tpot": each.base.tpot}
    assert each.base.share_in_time(0.02 * each.base.saturated) > 0.9


@pytest.mark.parametrize("kind", ["near-capacity", "bursty", "short", "ramp-down", "wide", "closed"])
def test_each_kind_is_drawn_again_by_its_seed(kind: str) -> None:
    first, again = (scenario(kind, 0, seed=SEED) for _ in range(2))
    assert first.plan == again.plan
    assert first.truth == again.truth
    assert first.kind.replace(" ", "-").startswith(kind.split("-")[0])


def test_a_short_run_takes_at_most_twenty_seconds() -> None:
    assert 10.0 <= (scenario("short", 1, seed=SEED).plan.config.stages[0].duration or 0.0) <= 20.0


def test_the_truth_follows_what_the_run_shows() -> None:
    base = next(each for each in map(batch_base, map(Random, range(40))) if 2.0 <= each.saturated <= 10.0)
    loads = {"calm": 0.2, "overload": 2.0}
    found = {
        name: shown(plan_of(base, name, constant(part * base.saturated, 30.0)), kind=name, base=base).truth.cause
        for name, part in loads.items()
    }
    assert found == {"calm": Cause.HEALTHY, "overload": Cause.BATCH}


def test_a_closed_loop_whose_cache_is_full_for_moments_is_not_bound_by_it() -> None:
    """Requests wait for the prefill of others for most of the time, and no more arrive than complete."""
    judged = JudgedScenario(scenario("closed", 0, seed=90))
    assert judged.verdict.cause is RunCause.UNKNOWN
    assert "requests wait for their first token; which limit holds them is unknown" in judged.story.lines[0].text
    assert JudgedScenario(scenario("closed", 4, seed=90)).verdict.cause is RunCause.KV


@pytest.mark.parametrize(("kind", "number", "known"), [("near-capacity", 6, False), ("rate", 1, True)])
def test_prompts_that_waited_for_others_do_not_tell_the_rate_without_a_queue(
    kind: str, number: int, *, known: bool
) -> None:
    verdict = JudgedScenario(scenario(kind, number, seed=88)).verdict
    assert verdict.cause is RunCause.RATE
    assert (verdict.sustainable is not None) is known
