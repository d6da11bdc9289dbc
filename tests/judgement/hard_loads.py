"""Scenarios near and beyond what simple loads show: large batches, wide lengths, bursts, short runs, ramps down."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random
from typing import Any

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_run import run_virtually
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.machines import draw_base, draw_workload, plan_of
from tests.judgement.overloads import RATES, batch_base, kv_base, rate_base
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.shown_truth import shown

Stages = tuple[StageConfig, ...]
CACHING = ("vllm-current", "sglang-current")
"""Engines with a prefix cache."""


def plain_base(random: Random) -> ConstantRates:
    """Draw an engine as it is by default, with a batch limit and KV blocks that a moderate load does not reach."""
    inputs, outputs = random.choice((((32, 100), (20, 60)), ((100, 400), (60, 200)), ((600, 1500), (100, 300))))
    return draw_base(random, draw_workload(random, inputs=inputs, outputs=outputs))


BASES: tuple[Callable[[Random], ConstantRates], ...] = (kv_base, batch_base, rate_base, plain_base)


def any_base(random: Random) -> ConstantRates | None:
    """Draw one of all engines; None if it serves too few or too many requests per second."""
    base = random.choice(BASES)(random)
    return base if RATES[0] <= base.saturated <= RATES[1] else None


def constant(rate: float, duration: float) -> Stages:
    """One load at a constant rate."""
    return (StageConfig(request_rate=rate, duration=duration),)


def changed(base: ConstantRates, **workload: Any) -> ConstantRates:
    """The same engine with another workload."""
    return dataclasses.replace(base, workload=dataclasses.replace(base.workload, **workload))


def large_batch(random: Random, name: str) -> Scenario | None:
    """Draw more requests than the engine completes, which pile up in a batch of 512 or more without a queue."""
    workload = draw_workload(random, inputs=(100, 300), outputs=(200, 600))
    settings = {"max_num_seqs": random.choice((512, 1024)), "kv_blocks": random.choice((40_000, 60_000))}
    base = draw_base(random, workload, engines=("vllm-0.6", *CACHING), settings=settings)
    if not RATES[0] <= base.saturated <= RATES[1]:
        return None
    rate = random.uniform(1.2, 2.5) * base.saturated
    plan = plan_of(base, name, constant(rate, random.choice((25.0, 40.0, 60.0))))
    found = shown(plan, kind="large batch", base=base)
    return None if found.truth.cause is Cause.HEALTHY or base.share_in_time(rate) > 0.9 else found


def near_capacity(random: Random, name: str) -> Scenario | None:
    """Draw a constant rate of 0.85 to 1.3 times what the engine completes."""
    base = any_base(random)
    if base is None:
        return None
    stages = constant(random.uniform(0.85, 1.3) * base.saturated, random.choice((45.0, 60.0, 90.0)))
    return shown(plan_of(base, name, stages), kind="near capacity", base=base)


def wide_lengths(random: Random, name: str) -> Scenario | None:
    """Draw lengths with a sigma of 1 or more."""
    base = any_base(random)
    if base is None:
        return None
    sigma, work = random.uniform(1.0, 1.4), base.workload
    caps = f"input_cap={min(8 * work.input_len, 3000)},output_cap={min(8 * work.output_len, 1000)}"
    base = changed(base, lengths=f"lognormal:input_sigma={sigma:.2f},output_sigma={sigma:.2f},{caps}", range_ratio=0.0)
    stages = constant(random.uniform(0.5, 1.6) * base.saturated, random.choice((40.0, 60.0, 90.0)))
    return shown(plan_of(base, name, stages), kind="wide lengths", base=base)


def bursty(random: Random, name: str) -> Scenario | None:
    """Draw arrivals with a burstiness of 0.2 to 0.4."""
    base = any_base(random)
    if base is None:
        return None
    base = changed(base, burstiness=round(random.uniform(0.2, 0.4), 2), arrivals="")
    stages = constant(random.uniform(0.3, 1.4) * base.saturated, random.choice((40.0, 60.0, 90.0)))
    return shown(plan_of(base, name, stages), kind="bursty", base=base)


def short_run(random: Random, name: str) -> Scenario | None:
    """Draw a run of 10 to 20 s."""
    base = any_base(random)
    if base is None:
        return None
    stages = constant(random.uniform(0.4, 2.0) * base.saturated, float(random.randint(10, 20)))
    return shown(plan_of(base, name, stages), kind="short run", base=base)


def ramp_down(random: Random, name: str) -> Scenario | None:
    """Draw a load that begins above what the engine serves, and falls."""
    base = any_base(random)
    if base is None:
        return None
    high, low = random.uniform(1.3, 2.2) * base.saturated, random.uniform(0.1, 0.4) * base.saturated
    falls = StageConfig(request_rate=low, ramp_from=high, duration=random.choice((30.0, 50.0)))
    calm = StageConfig(request_rate=low, duration=random.choice((20.0, 40.0)))
    return shown(plan_of(base, name, (falls, calm)), kind="ramp down", base=base)


def cold_cache(random: Random, name: str) -> Scenario | None:
    """Draw shared prefixes that an engine with a cache must compute once each, at a rate that it then sustains."""
    count, length = random.choice((20, 40, 60)), random.choice((768, 1024, 1536))
    work = WorkloadConfig(input_len=random.randint(32, 128), output_len=random.randint(20, 80), prefix_len=length)
    work = dataclasses.replace(work, num_prefixes=count)
    settings = {"kv_blocks": 2 * count * length // 16 + 4000}
    base = draw_base(random, work, engines=CACHING, settings=settings)
    if not RATES[0] <= base.saturated <= 3 * RATES[1]:
        return None
    stages = constant(random.uniform(0.3, 0.8) * base.saturated, random.choice((45.0, 60.0)))
    return shown(plan_of(base, name, stages), kind="cold cache", base=base)


def tpot_objective(random: Random, name: str) -> Scenario | None:
    """Draw an objective on TPOT that an idle engine keeps, and a loaded one may not."""
    base = plain_base(random)
    if not RATES[0] <= base.saturated <= RATES[1] or base.workload.output_len < 40:
        return None
    low = _decode_time(base, 0.05)
    base = dataclasses.replace(base, tpot=round(random.uniform(1.15, 2.0) * low, 4))
    stages = constant(random.uniform(0.2, 0.9) * base.saturated, random.choice((40.0, 60.0)))
    return shown(plan_of(base, name, stages), kind="TPOT objective", base=base)


def _decode_time(base: ConstantRates, share: float) -> float:
    """Median TPOT in seconds at a share of the rate that the engine completes."""
    plan = plan_of(base, "idle", constant(share * base.saturated, 30.0))
    values = sorted(each.tpot for each in run_virtually(plan).records if each.tpot)
    return values[len(values) // 2] if values else 0.02
