"""Conditions of runs for tests: a calm run of 400 requests, of which each test replaces a part."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from servetop.analysis.confounding.conditions import (
    CacheCounts,
    ClientLoad,
    GpuReadings,
    KvSize,
    ObservedLengths,
    ReplicaCounts,
    RunConditions,
)
from servetop.analysis.trust.trust import Trust
from servetop.core.config import RunConfig, WorkloadConfig

NO_CACHE = CacheCounts(hits=np.empty(0), queries=np.empty(0), generated=np.empty(0))


def conditions(*, seed: int = 0, workload: WorkloadConfig | None = None, **parts: Any) -> RunConditions:
    """A run in which nothing is unusual, except `parts`, the fields of RunConditions."""
    calm = RunConditions(
        config=RunConfig(seed=seed, workload=workload or WorkloadConfig()),
        requests=400,
        failed=0,
        lengths=lengths([128] * 400),
        cache=NO_CACHE,
        client=client(),
        kv=KvSize(blocks=1000.0, block_size=16),
        replicas=ReplicaCounts(configured=1),
    )
    return dataclasses.replace(calm, **parts)


def lengths(prompt: Any, output: Any = None, *, first: int = 0) -> ObservedLengths:
    """Token counts of requests with ids from `first` on; outputs of 64 tokens unless given."""
    prompts = np.asarray(prompt, dtype=np.float64)
    outputs = np.full(prompts.size, 64.0) if output is None else np.asarray(output, dtype=np.float64)
    return ObservedLengths(ids=np.arange(first, first + prompts.size), prompt=prompts, output=outputs)


def client(*, slip: float = 0.001, lag: float = 0.001, cpu: float = 0.2, **trust: Any) -> ClientLoad:
    """A client with these percentiles, in seconds."""
    return ClientLoad(trust=Trust(slip_p99=slip, loop_lag_p99=lag, **trust), cpu_share=cpu)


def gpu(
    clock: Any,
    *,
    use: Any = 0.9,
    power: float = math.nan,
    throttled: Sequence[bool] | None = None,
    reasons: Sequence[str] = (),
) -> GpuReadings:
    """Readings of a device; numbers are repeated 100 times."""
    clocks, uses = (np.full(100, each) if isinstance(each, float) else np.asarray(each) for each in (clock, use))
    return GpuReadings(
        utilisation=uses,
        sm_clock=clocks,
        power=np.full(clocks.size, power),
        throttled=np.zeros(clocks.size, np.bool_) if throttled is None else np.asarray(throttled),
        reasons=tuple(reasons),
    )
