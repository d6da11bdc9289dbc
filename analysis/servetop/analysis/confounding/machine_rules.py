"""Whether the KV cache, the clocks of the GPUs, or other load on them differ between two runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.confounding.conditions import GpuReadings, RunConditions
from servetop.analysis.confounding.confounder import ALL_METRICS, Confounder, ConfounderKind
from servetop.analysis.statistics.dependent_errors import standard_error
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.text import formats
from servetop.core.units import GIB

KV_LIMIT = 0.01
"""Relative difference of the KV caches that matters; it changes how many requests fit by as much."""
CLOCK_LIMIT = 0.03
"""Relative difference of the clocks that matters: above the one or two steps of 15 MHz by which readings vary."""
CLOCK_ERRORS = 4.0
"""Differences within this many standard errors are chance."""
POWER_TOLERANCE = 0.03
"""Relative difference of the power of two devices that do the same work."""
THROTTLED_LIMIT = 0.25
"""Difference of the fraction of throttled readings that matters where clocks are not reported."""
UTILISATIONS = (0.05, 0.4, 0.75, 0.95)
"""Lower bounds of the levels of utilisation within which clocks are compared: power, and so clocks, depend on it."""
MIN_READINGS = 8
"""Readings of a level in both runs below which it is left out."""
FOREIGN_LIMIT = GIB
"""Bytes of other processes that matter; an H200 without others reports 0.6 of it."""
MHZ = 1e6


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
    clocks = _levels(a[1], b[1], "sm_clock")
    if clocks is None or _works_harder(a[1], b[1], b_is_slower=clocks[1].mean < clocks[0].mean):
        return None
    # the steadier run shows how much clocks vary by themselves: a throttle part of the way makes the other one unsteady
    margin = max(CLOCK_LIMIT * clocks[0].mean, CLOCK_ERRORS * math.sqrt(2) * min(each.error for each in clocks))
    if not abs(clocks[1].mean - clocks[0].mean) > margin:
        return None
    mhz = [each.mean / MHZ for each in clocks]
    device = "" if a[0] == b[0] else f"GPU {a[0]} at "
    text = f"GPU {b[0]} ran at {mhz[1]:,.0f} MHz in B and {device}{mhz[0]:,.0f} MHz in A at the same utilisation"
    return _clocks_confounder(f"{text} ({mhz[1] / mhz[0] - 1:+.1%})", a[1], b[1])


def _throttled(a: tuple[int, GpuReadings], b: tuple[int, GpuReadings]) -> Confounder | None:
    """Name a device that was throttled for longer if its clocks are not reported, or hardly any at one utilisation."""
    shares = _throttled_shares(a[1], b[1])
    known = _levels(a[1], b[1], "sm_clock") is not None
    if known or abs(shares[1] - shares[0]) <= THROTTLED_LIMIT:
        return None
    if _works_harder(a[1], b[1], b_is_slower=shares[1] > shares[0]):
        return None
    reasons = ", ".join(sorted({*a[1].reasons, *b[1].reasons}))
    text = (
        f"GPU {b[0]} was throttled ({reasons}) for {shares[1]:.0%} of the time under load in B and {shares[0]:.0%} in A"
    )
    return _clocks_confounder(text, a[1], b[1])


def _works_harder(a: GpuReadings, b: GpuReadings, *, b_is_slower: bool) -> bool:
    """Whether the slower device drew more power: then its clocks are a consequence of its load.

    A device with a lower power limit, or a hot one, draws less.
    """
    powers = _levels(a, b, "power")
    if powers is None:
        return False
    slower, faster = (powers[1].mean, powers[0].mean) if b_is_slower else (powers[0].mean, powers[1].mean)
    return slower > (1 + POWER_TOLERANCE) * faster


@dataclass(frozen=True, slots=True)
class _Level:
    """The mean of a reading over the levels of utilisation that both runs had."""

    mean: float
    error: float
    """Its standard error."""


def _levels(a: GpuReadings, b: GpuReadings, name: str) -> tuple[_Level, _Level] | None:
    """Return `sm_clock` or `power` of both devices at the same utilisation; None if they had none in common."""
    columns = [_by_level(each, name) for each in (a, b)]
    common = [pair for pair in zip(*columns, strict=True) if min(part.size for part in pair) >= MIN_READINGS]
    if not common:
        return None
    weights = [min(part.size for part in pair) for pair in common]
    left, right = (_mean([pair[side] for pair in common], weights) for side in (0, 1))
    return left, right


def _by_level(gpu: GpuReadings, name: str) -> Iterator[FloatArray]:
    values: FloatArray = getattr(gpu, name)
    known = ~np.isnan(values)
    for low, high in itertools.pairwise((*UTILISATIONS, math.inf)):
        yield values[known & (gpu.utilisation >= low) & (gpu.utilisation < high)]


def _mean(levels: Sequence[FloatArray], weights: Sequence[int]) -> _Level:
    mean = float(np.average([level.mean() for level in levels], weights=weights))
    deviations = np.concatenate([level - level.mean() for level in levels])
    error = standard_error(deviations)
    return _Level(mean, float(deviations.std()) / math.sqrt(deviations.size) if math.isnan(error) else error)


def _throttled_shares(a: GpuReadings, b: GpuReadings) -> tuple[float, float]:
    loaded = (gpu.throttled[_loaded(gpu)] for gpu in (a, b))
    share_a, share_b = (float(each.mean()) if each.size else 0.0 for each in loaded)
    return share_a, share_b


def _clocks_confounder(text: str, a: GpuReadings, b: GpuReadings) -> Confounder:
    evidence = {"throttled": _throttled_shares(a, b)}
    for name in ("sm_clock", "power"):
        levels = _levels(a, b, name)
        if levels is not None:
            evidence[name] = levels[0].mean, levels[1].mean
    return Confounder(kind=ConfounderKind.GPU_CLOCKS, text=text, evidence=evidence, metrics=ALL_METRICS)


def other_load_confounder(a: RunConditions, b: RunConditions) -> Confounder | None:
    """Compare the memory that other processes hold on the engine's GPUs."""
    held = tuple(_foreign_memory(each) for each in (a, b))
    if not abs(held[1] - held[0]) > FOREIGN_LIMIT:
        return None
    return Confounder(
        kind=ConfounderKind.OTHER_LOAD,
        text=f"other processes held {formats.memory(held[1])} of the GPUs in B and {formats.memory(held[0])} in A",
        evidence={"memory of other processes": (held[0], held[1])},
        metrics=ALL_METRICS,
    )


def _foreign_memory(run: RunConditions) -> float:
    known = [gpu.foreign_memory for gpu in run.gpus.values() if not math.isnan(gpu.foreign_memory)]
    return sum(known) if known else math.nan
