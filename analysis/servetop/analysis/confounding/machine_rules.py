"""Whether the KV cache, the clocks of the GPUs, or other load on them differ between two runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from servetop.analysis.confounding.conditions import GpuReadings, RunConditions
from servetop.analysis.confounding.confounder import ALL_METRICS, Confounder, ConfounderKind
from servetop.analysis.confounding.slices import standard_error
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.units import GIB

KV_LIMIT = 0.01
"""Relative difference of the KV caches that matters; it changes how many requests fit by as much."""
CLOCK_LIMIT = 0.03
"""Relative difference of the clocks that matters: above the one or two steps of 15 MHz by which readings vary."""
CLOCK_ERRORS = 4.0
"""Differences within this many standard errors are chance."""
THROTTLED_LIMIT = 0.25
"""Difference of the fraction of throttled readings that matters where clocks are not reported."""
UTILISATIONS = (0.05, 0.4, 0.75, 0.95)
"""Lower bounds of the levels of utilisation within which clocks are compared: power, and so clocks, depend on it."""
MIN_READINGS = 8
"""Readings of a level in both runs below which it is left out."""
FOREIGN_LIMIT = GIB
"""Bytes of other processes that matter; a process that computes nothing holds about half of it."""
MHZ = 1e6
Clocks = tuple[tuple[float, float], tuple[float, float]]
"""Mean clock of A and its standard error, and those of B; hertz."""


def kv_size_confounder(a: RunConditions, b: RunConditions) -> Confounder | None:
    """Compare the tokens that the KV cache of one replica holds, or its blocks if their size is unknown."""
    sized = a.kv.tokens is not None and b.kv.tokens is not None
    sizes = (a.kv.tokens, b.kv.tokens) if sized else (a.kv.blocks, b.kv.blocks)
    if not sizes[0] or not sizes[1] or abs(sizes[1] / sizes[0] - 1) <= KV_LIMIT:
        return None
    what = "tokens" if sized else "blocks"
    return Confounder(
        kind=ConfounderKind.KV_SIZE,
        text=(
            f"the KV cache holds {sizes[1]:,.0f} {what} in B and {sizes[0]:,.0f} in A ({sizes[1] / sizes[0] - 1:+.1%})"
        ),
        evidence={what: (sizes[0], sizes[1])},
        metrics=("throughput", "goodput", "ttft", "e2el", "preemptions"),
    )


def gpu_clocks_confounder(a: RunConditions, b: RunConditions) -> Confounder | None:
    """Compare the devices' clocks at the same utilisation, from the slowest to the fastest; name the worst pair."""
    pairs = zip(_by_clock(a), _by_clock(b), strict=False)
    found = [each for pair in pairs for each in (_slower(*pair), _throttled(*pair)) if each is not None]
    return max(found, key=lambda each: abs(np.subtract(*each.evidence["throttled"])), default=None)


def _by_clock(run: RunConditions) -> list[tuple[int, GpuReadings]]:
    """Return the devices under load with their indexes, by ascending clock."""
    loaded = [(index, each) for index, each in run.gpus.items() if (each.utilisation >= UTILISATIONS[0]).any()]
    return sorted(loaded, key=lambda pair: float(np.nan_to_num(pair[1].sm_clock[_loaded(pair[1])]).mean()))


def _loaded(gpu: GpuReadings) -> BoolArray:
    return np.asarray(gpu.utilisation >= UTILISATIONS[0])


def _slower(a: tuple[int, GpuReadings], b: tuple[int, GpuReadings]) -> Confounder | None:
    clocks = _levels(a[1], b[1])
    if clocks is None:
        return None
    (clock_a, error_a), (clock_b, error_b) = clocks
    # the steadier run shows how much clocks vary by themselves: a throttle part of the way makes the other one unsteady
    margin = max(CLOCK_LIMIT * clock_a, CLOCK_ERRORS * math.sqrt(2) * min(error_a, error_b))
    if not abs(clock_b - clock_a) > margin:
        return None
    text = (
        f"GPU {b[0]} ran at {clock_b / MHZ:,.0f} MHz in B and GPU {a[0]} at {clock_a / MHZ:,.0f} MHz in A"
        if a[0] != b[0]
        else f"GPU {b[0]} ran at {clock_b / MHZ:,.0f} MHz in B and {clock_a / MHZ:,.0f} MHz in A"
    )
    return _clocks_confounder(f"{text} at the same utilisation ({clock_b / clock_a - 1:+.1%})", a[1], b[1], clocks)


def _levels(a: GpuReadings, b: GpuReadings) -> Clocks | None:
    """Return mean and standard error of both clocks over the levels of utilisation that both runs had; None if none."""
    columns = [_by_level(each) for each in (a, b)]
    common = [
        (left, right, min(left.size, right.size))
        for left, right in zip(*columns, strict=True)
        if min(left.size, right.size) >= MIN_READINGS
    ]
    if not common:
        return None
    weights = [weight for *_, weight in common]
    return _mean([left for left, *_ in common], weights), _mean([right for _, right, _ in common], weights)


def _by_level(gpu: GpuReadings) -> Iterator[FloatArray]:
    bounds = (*UTILISATIONS, math.inf)
    known = ~np.isnan(gpu.sm_clock)
    for low, high in itertools.pairwise(bounds):
        yield gpu.sm_clock[known & (gpu.utilisation >= low) & (gpu.utilisation < high)]


def _mean(levels: Sequence[FloatArray], weights: Sequence[int]) -> tuple[float, float]:
    mean = float(np.average([level.mean() for level in levels], weights=weights))
    deviations = np.concatenate([level - level.mean() for level in levels])
    error = standard_error(deviations)
    return mean, float(deviations.std()) / math.sqrt(deviations.size) if math.isnan(error) else error


def _throttled(a: tuple[int, GpuReadings], b: tuple[int, GpuReadings]) -> Confounder | None:
    """Name a device that was throttled for longer, even if its clocks are not reported."""
    shares = _throttled_shares(a[1], b[1])
    clocks = _levels(a[1], b[1])
    faster = clocks is not None and abs(clocks[1][0] / clocks[0][0] - 1) <= CLOCK_LIMIT
    if abs(shares[1] - shares[0]) <= THROTTLED_LIMIT or faster:
        return None
    reasons = ", ".join(sorted({*a[1].reasons, *b[1].reasons}))
    text = (
        f"GPU {b[0]} was throttled ({reasons}) for {shares[1]:.0%} of the time under load in B and {shares[0]:.0%} in A"
    )
    return _clocks_confounder(text, a[1], b[1], clocks)


def _throttled_shares(a: GpuReadings, b: GpuReadings) -> tuple[float, float]:
    loaded = (gpu.throttled[_loaded(gpu)] for gpu in (a, b))
    share_a, share_b = (float(each.mean()) if each.size else 0.0 for each in loaded)
    return share_a, share_b


def _clocks_confounder(text: str, a: GpuReadings, b: GpuReadings, clocks: Clocks | None) -> Confounder:
    evidence = {"throttled": _throttled_shares(a, b)}
    if clocks is not None:
        evidence["sm clock"] = clocks[0][0], clocks[1][0]
    return Confounder(kind=ConfounderKind.GPU_CLOCKS, text=text, evidence=evidence, metrics=ALL_METRICS)


def other_load_confounder(a: RunConditions, b: RunConditions) -> Confounder | None:
    """Compare the memory that other processes hold on the engine's GPUs."""
    held = tuple(_foreign_memory(each) for each in (a, b))
    if not abs(held[1] - held[0]) > FOREIGN_LIMIT:
        return None
    return Confounder(
        kind=ConfounderKind.OTHER_LOAD,
        text=f"other processes held {held[1] / GIB:.1f} GiB of the GPUs in B and {held[0] / GIB:.1f} GiB in A",
        evidence={"memory of other processes": (held[0], held[1])},
        metrics=ALL_METRICS,
    )


def _foreign_memory(run: RunConditions) -> float:
    known = [gpu.foreign_memory for gpu in run.gpus.values() if not math.isnan(gpu.foreign_memory)]
    return sum(known) if known else math.nan
