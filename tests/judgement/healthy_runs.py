"""Scenarios in which the engine keeps up: loads of all kinds below its capacity."""

from __future__ import annotations

import dataclasses
from random import Random

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_run import run_virtually
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.machines import draw_base, draw_workload, plan_of
from tests.judgement.queue_truth import lasting_queues, share_in_time
from tests.judgement.scenario import Cause, Scenario, Truth

LOADS = ("constant", "ramp", "bursty", "closed loop", "steps", "sinusoid", "every second", "nearly idle",
         "near capacity", "KV well used")  # fmt: skip
_RATES = (2.0, 60.0)
_WELL_USED = 0.85
"""Fraction of the KV blocks that a run must use at its peak to show that usage alone does no harm."""
_ENOUGH = 0.99
"""Fraction of the requests whose first token must meet the objective."""


def healthy(random: Random, name: str, *, load: str = "") -> Scenario | None:
    """Draw a load below capacity, and keep it if no queue lasted and 99 % of the requests were served in time."""
    load = load or random.choice(LOADS)
    base = _base(random, load)
    if not _RATES[0] <= base.saturated <= _RATES[1]:
        return None
    plan = plan_of(base, name, _stages(load, base.saturated, random))
    run = run_virtually(plan)
    preempted = any(state.preempted for state in run.admissions)
    if lasting_queues(run) or preempted or share_in_time(run, base.objective) < _ENOUGH:
        return None
    used = max(tick.engine.kv_usage or 0.0 for tick in run.ticks if tick.engine is not None)
    if load == "KV well used" and used < _WELL_USED:
        return None
    truth = Truth(cause=Cause.HEALTHY, detail=f"{load}, at most {used:.0%} of the KV blocks")
    rates = None if load in ("closed loop", "KV well used") else base
    return Scenario(name=name, kind="healthy", plan=plan, truth=truth, base=rates).keeping(run)


def _base(random: Random, load: str) -> ConstantRates:
    inputs, outputs = random.choice((((32, 100), (20, 60)), ((100, 400), (60, 200)), ((600, 1500), (100, 300))))
    workload = draw_workload(random, inputs=inputs, outputs=outputs, bursty=load == "bursty")
    if load in ("sinusoid", "every second"):
        arrivals = {"sinusoid": "sinusoid:period=30", "every second": "burst"}[load]
        workload = dataclasses.replace(workload, arrivals=arrivals, burstiness=WorkloadConfig().burstiness)
    if load != "KV well used":
        return draw_base(random, workload)
    blocks = 12 * (workload.input_len + workload.output_len) // 16
    return draw_base(random, workload, settings={"kv_blocks": max(blocks, 4096 // 16)})


def _stages(load: str, rate: float, random: Random) -> tuple[StageConfig, ...]:
    duration = random.choice((60.0, 80.0, 100.0))
    part = random.uniform(0.2, 0.5)
    match load:
        case "ramp":
            return (StageConfig(request_rate=0.55 * rate, ramp_from=0.1 * rate, duration=duration),)
        case "closed loop":
            return (StageConfig(max_concurrency=random.choice((2, 4, 8, 16)), duration=duration),)
        case "steps":
            shares = random.choice(((0.1, 0.2, 0.3, 0.4, 0.5), (0.5, 0.2, 0.5, 0.1)))
            return tuple(StageConfig(request_rate=share * rate, duration=20.0) for share in shares)
        case "bursty" | "sinusoid" | "every second":
            return (StageConfig(request_rate=0.6 * part * rate, duration=duration),)
        case "near capacity":
            return (StageConfig(request_rate=random.uniform(0.6, 0.85) * rate, duration=duration),)
        case "KV well used":
            return (StageConfig(max_concurrency=random.randint(10, 16), duration=duration),)
        case "nearly idle":
            return (StageConfig(request_rate=0.05 * rate, duration=duration),)
        case _:
            warmup = StageConfig(request_rate=0.5 * part * rate, duration=10.0, warmup=True)
            return (warmup, StageConfig(request_rate=part * rate, duration=duration))
