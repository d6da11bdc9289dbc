"""Whether the latencies of an open loop remember a queue, as measured at the loads near the answer.

Where requests wait for each other, or share a batch, the latency of a request depends on how many were in flight as it
arrived, and their number varies by more than random arrivals make it, so a load needs time to show its level. Where
neither is so, a load shows its level at once, as in a closed loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.run.search.sample_dependence import BlockCorrelation

_LEAST_REQUESTS = 20
"""Requests of a load that are compared at least."""
_NEAR = 0.3
"""Distance of the logarithms of loads that tell of the answer between them."""
_MOST, _MOST_DISPERSION = 0.2, 1.7
"""Rank correlation from which latencies depend on the requests in flight, and variance of these over their mean from
which they remember a queue; a standard error included. Set on servers, curves and seeds apart from the judgement's.
"""
_LEAST_SPANS = 3.0
"""Latencies for which loads at either side of an answer were kept at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMemory:
    """How the latencies of one load of an open loop depend on what was in flight, and on each other."""

    correlation: float
    """Rank correlation (Spearman) of latencies with the requests in flight as each arrived."""
    requests: int
    """Requests that were compared."""
    dispersion: float
    """Variance of the requests in flight over their mean: 1 if none affects another (M/G/infinity)."""
    spans: float
    """The time of the load in latencies."""
    blocks: BlockCorrelation | None
    """How far samples are alike within blocks of one latency; None if they are too few."""


class _Window(Protocol):
    @property
    def load(self) -> float: ...

    @property
    def counted(self) -> float: ...

    @property
    def missed(self) -> float: ...

    @property
    def memory(self) -> QueueMemory | None: ...


def queue_memory(
    latencies: FloatArray, before: FloatArray, level: FloatArray, *, spans: float, blocks: BlockCorrelation | None
) -> QueueMemory | None:
    """Return the memory that a load shows; None if too few requests, or as many in flight each time, show none.

    `latencies` and the requests in flight `before` each request have the shape (requests,); `level` are the requests
    in flight at even times, which last for `spans` latencies.
    """
    if latencies.size < _LEAST_REQUESTS or not np.ptp(before) or not np.ptp(latencies) or not 0 < spans < math.inf:
        return None
    return QueueMemory(
        correlation=float(np.corrcoef(_ranks(latencies), _ranks(before))[0, 1]),
        requests=latencies.size,
        dispersion=float(level.var() / max(float(level.mean()), 1e-9)),
        spans=spans,
        blocks=blocks,
    )


def shows_level_at_once(windows: Sequence[_Window], *, allowed: float) -> bool:
    """Whether latencies near the largest load do not depend on the requests in flight, at loads below and above it.

    `allowed` is the share of samples that may miss the limit. False while too little was seen at either side.
    """
    seen = [each for each in windows if each.counted and each.memory is not None]
    middle = _crossing(seen, allowed)
    near = [each for each in seen if abs(math.log(each.load / middle)) < _NEAR]
    sides = [each for each in near if each.load <= middle], [each for each in near if each.load > middle]
    return all(_forgets([each.memory for each in side if each.memory is not None]) for side in sides)


def _crossing(windows: Sequence[_Window], allowed: float) -> float:
    """Return the load up to which no more than allowed was missed, with the fewest samples that say otherwise."""
    loads = np.array([each.load for each in windows])
    excess = np.array([each.missed - allowed * each.counted for each in windows])
    above = loads > loads[:, None]
    against = np.where(above, np.maximum(-excess, 0.0), np.maximum(excess, 0.0)).sum(axis=1)
    return float(loads[np.argmin(against)]) if loads.size else math.nan


def _forgets(seen: Sequence[QueueMemory]) -> bool:
    """Whether neither the latencies nor the requests in flight of some loads remember a queue."""
    requests, freedom = sum(each.requests for each in seen), sum(max(each.spans - 1, 0.0) for each in seen)
    if freedom < _LEAST_SPANS:
        return False
    correlation = sum(each.correlation * each.requests for each in seen) / requests
    dispersion = sum(each.dispersion * each.spans for each in seen) / freedom
    return (
        correlation + 1 / math.sqrt(requests) < _MOST and dispersion * (1 + math.sqrt(2 / freedom)) < _MOST_DISPERSION
    )


def _ranks(values: FloatArray) -> FloatArray:
    """Return the ranks of values; equal ones have their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], dtype=np.float64)
