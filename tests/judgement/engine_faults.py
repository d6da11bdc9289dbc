"""Scenarios of an engine that serves the load until it loses KV blocks, or apart from pauses of 1 to 3 s."""

from __future__ import annotations

import dataclasses
import math
from random import Random

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.engine_faults import EnginePause, KvLeak
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.hard_loads import any_base, constant
from tests.judgement.machines import CONTEXT, ENGINES, draw_base, draw_workload, plan_of
from tests.judgement.overloads import RATES
from tests.judgement.run_state import RunState
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.shown_truth import shown

_BLOCK = 16
"""Tokens of a KV block."""
_ENOUGH = 0.99
"""Fraction of the requests that meet their objectives in spite of pauses that do no harm."""


def kv_leak(random: Random, name: str) -> Scenario | None:
    """Draw an engine that loses most of its KV blocks within seconds, and then serves less than the load.

    The rates are those of an engine with the blocks that stay.
    """
    workload = draw_workload(random, inputs=(64, 500), outputs=(60, 300))
    tokens = workload.input_len + workload.output_len
    blocks = max(random.randint(30, 90) * tokens // _BLOCK, CONTEXT // _BLOCK)
    base = draw_base(
        random, workload, engines=(*ENGINES, "tgi-2024", "vllm-0.2.1-swap"), settings={"kv_blocks": blocks}
    )
    least = math.ceil(1.05 * longest(workload) / _BLOCK) + 2
    floor = max(least / blocks, random.uniform(0.08, 0.35))
    if not RATES[0] <= base.saturated <= RATES[1] or floor > 0.5:
        return None
    start, lasts = round(random.uniform(12.0, 25.0), 1), random.uniform(4.0, 20.0)
    leak = KvLeak(start=start, rate=(1 - floor) * blocks / lasts, floor=floor)
    stages = constant(random.uniform(0.4, 0.75) * base.saturated, random.choice((70.0, 90.0)))
    left = dataclasses.replace(base, settings={**base.settings, "kv_blocks": math.ceil(floor * blocks)})
    found = shown(plan_of(base, name, stages, leak=leak), kind="KV leak", base=left, detail=_lost(leak, blocks, lasts))
    serves = _healthy(base, name, stages) if found.truth.cause is Cause.KV else False
    return found if serves else None


def _lost(leak: KvLeak, blocks: int, lasts: float) -> str:
    return f"{leak.lost_by(math.inf, blocks)} of {blocks} blocks lost from {leak.start} s on within {lasts:.0f} s"


def longest(workload: WorkloadConfig) -> float:
    """Most tokens of a request of one of the drawn distributions of lengths."""
    if workload.lengths:
        caps = (part.partition("=") for part in workload.lengths.partition(":")[2].split(","))
        return sum(float(value) for key, _, value in caps if key.endswith("_cap"))
    return (1 + workload.range_ratio) * (workload.input_len + workload.output_len)


def pauses(random: Random, name: str) -> Scenario | None:
    """Draw three or more pauses of an engine that would serve the load, with a queue after them if the load is high."""
    base = any_base(random)
    if base is None:
        return None
    share = random.uniform(*random.choice(((0.3, 0.6), (0.6, 0.85))))
    duration = random.choice((60.0, 90.0))
    stages = constant(share * base.saturated, duration)
    plan = plan_of(base, name, stages, pauses=_pauses(random, duration))
    found = shown(plan, kind="pauses", base=base)
    if RunState(found.run).share_met() >= _ENOUGH or not _healthy(base, name, stages):
        return None
    listed = ", ".join(f"{each.seconds:.1f} s at {each.start:.0f} s" for each in plan.pauses)
    first, last = plan.pauses[0], plan.pauses[-1]
    truth = dataclasses.replace(
        found.truth,
        cause=Cause.STALL,
        onset=first.start,
        first_sign=None,
        until=last.until,
        detail=f"pauses of {listed}",
    )
    return dataclasses.replace(found, truth=truth).keeping(found.run)


def _pauses(random: Random, duration: float) -> tuple[EnginePause, ...]:
    between = random.uniform(8.0, 18.0)
    at, found = random.uniform(8.0, 15.0), []
    while at < duration - 4.0:
        found.append(EnginePause(start=round(at, 2), seconds=round(random.uniform(1.0, 3.0), 2)))
        at += between * random.uniform(0.8, 1.2)
    return tuple(found)


def _healthy(base: ConstantRates, name: str, stages: tuple[StageConfig, ...]) -> bool:
    """Whether the same engine serves the load without the fault."""
    return shown(plan_of(base, name, stages), kind="without", base=base).truth.cause is Cause.HEALTHY
