"""Arrival processes by name (`--arrivals`), and the process of a workload at a rate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from servetop.workload.arrivals.arrival_process import (
    AllAtOnce,
    ArrivalProcess,
    BurstArrivals,
    ConstantArrivals,
    GammaArrivals,
    InProcessBursts,
    SpacedArrivals,
)
from servetop.workload.arrivals.rate_curves import CurvedArrivals, SineCurve
from servetop.workload.distribution_spec import DistributionSpec, KnownDistributions, SpecParameter, parse_distribution

DAY = 86_400.0
IN_PROCESS_BURST = "in-process-burst"
ARRIVAL_PROCESSES: KnownDistributions = {
    "gamma": {},
    "poisson": {},
    "constant": {},
    "burst": {"period": SpecParameter(1.0, high=3600)},
    IN_PROCESS_BURST: {},
    "spaced": {},
    "sinusoid": {"period": SpecParameter(60.0), "amplitude": SpecParameter(0.5, high=1.0)},
    "diurnal": {"period": SpecParameter(DAY), "amplitude": SpecParameter(0.8, high=1.0)},
    "all-at-once": {},
    "trace": {},
}
"""`trace` takes the times of the dataset; the others are pure functions of rate and seed."""
FASTEST_SPACED = 1000.0
"""Highest rate of `spaced`, in requests per second: one millisecond apart."""
RAMPABLE_ARRIVALS = ("gamma", "poisson", "constant")
"""Processes that can follow a changing rate."""


def parse_arrivals(text: str) -> DistributionSpec:
    """Return the arrival process that a text names; the empty text is gamma. UsageError for an unknown one."""
    return parse_distribution(text or "gamma", ARRIVAL_PROCESSES, option="--arrivals")


def arrivals_for(
    rate: float, *, burstiness: float, seed: Sequence[int], spec: DistributionSpec | None = None
) -> ArrivalProcess:
    """Return the process at a rate; an infinite rate is all at once, an infinite burstiness evenly spaced."""
    name = "gamma" if spec is None else spec.name
    if math.isinf(rate) or name == "all-at-once":
        return AllAtOnce()
    if spec is not None and name in ("sinusoid", "diurnal"):
        unit = arrivals_for(1.0, burstiness=burstiness, seed=seed)
        return CurvedArrivals(unit, SineCurve(mean=rate, period=spec["period"], amplitude=spec["amplitude"]))
    if spec is not None and name == "burst":
        return BurstArrivals(rate, spec["period"])
    if name == IN_PROCESS_BURST:
        return InProcessBursts(rate)
    if name == "spaced":
        return SpacedArrivals(rate)
    if name == "constant" or (name == "gamma" and math.isinf(burstiness)):
        return ConstantArrivals(rate)
    return GammaArrivals(rate, 1.0 if name == "poisson" else burstiness, tuple(seed))


def seeded_arrivals(
    *, burstiness: float, seed: Sequence[int], spec: DistributionSpec | None = None
) -> Callable[[float], ArrivalProcess]:
    """Arrival processes of one stage, by rate: each call has a random stream of its own, fixed by the seed."""
    numbers = itertools.count()
    return lambda rate: arrivals_for(rate, burstiness=burstiness, seed=(*seed, next(numbers)), spec=spec)
