"""Scenarios of several replicas, equal or not, of a GPU that is throttled, and of failures inside an overload."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from servetop.core.config import StageConfig
from servetop.simulator.virtual_run.virtual_gpu import GpuTelemetry
from servetop.simulator.virtual_run.virtual_run_plan import Outage, OutageKind
from tests.judgement.hard_loads import any_base, constant
from tests.judgement.machines import plan_of
from tests.judgement.overloads import RATES, batch_base, kv_base, rate_base
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.shown_truth import shown

_OVERLOADS = (Cause.KV, Cause.BATCH, Cause.RATE)


def equal_replicas(random: Random, name: str) -> Scenario | None:
    """Draw two equal replicas under any load."""
    base = any_base(random)
    if base is None:
        return None
    stages = constant(2 * random.uniform(0.4, 1.8) * base.saturated, random.choice((40.0, 60.0)))
    return shown(plan_of(base, name, stages, replicas=2), kind="two replicas", base=base)


def unequal_replicas(random: Random, name: str) -> Scenario | None:
    """Draw two replicas of which one serves far less, in turns."""
    base = random.choice((batch_base, kv_base, rate_base))(random)
    if not RATES[0] <= base.saturated <= RATES[1]:
        return None
    weak: Mapping[str, Any] = random.choice(({"max_num_seqs": 2}, {"gpu.flops": 30e12, "gpu.bandwidth": 200e9}))
    stages = constant(2 * random.uniform(0.4, 0.9) * base.saturated, random.choice((40.0, 60.0)))
    plan = plan_of(base, name, stages, replicas=2, replica_settings={1: weak})
    found = shown(plan, kind="unequal replicas", base=None, detail=f"the second has {dict(weak)}")
    return None if found.truth.cause is Cause.HEALTHY else found


def throttled(random: Random, name: str) -> Scenario | None:
    """Draw a GPU whose clock falls so far that it no longer serves the load."""
    base = rate_base(random)
    if not RATES[0] <= base.saturated <= RATES[1]:
        return None
    start, share = round(random.uniform(15.0, 30.0), 1), random.uniform(0.2, 0.5)
    gpus = GpuTelemetry(throttle_from=start, throttled_to=share, reason="heat")
    stages = constant(random.uniform(0.5, 0.8) * base.saturated, random.choice((60.0, 80.0)))
    detail = f"{share:.0%} of the clock from {start} s on"
    found = shown(plan_of(base, name, stages, gpus=gpus), kind="throttled", base=None, detail=detail)
    return found if found.truth.cause in _OVERLOADS else None


def failures_in_overload(random: Random, name: str) -> Scenario | None:
    """Draw an overload in which one or two of a hundred requests fail as well."""
    base = any_base(random)
    if base is None:
        return None
    calm = StageConfig(request_rate=0.4 * base.saturated, duration=20.0)
    busy = StageConfig(request_rate=random.uniform(1.4, 2.0) * base.saturated, duration=30.0)
    outage = Outage(kind=OutageKind.HTTP_500, start=0.0, share=random.uniform(0.008, 0.02))
    found = shown(plan_of(base, name, (calm, busy), outages=(outage,)), kind="failures inside", base=base)
    failed = any(record.error is not None and record.status == "error" for record in found.run.records)
    return found if failed and found.truth.cause in _OVERLOADS else None
