"""Percentiles of many windows of ticks that overlap, at the cost of adding each tick's histogram once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from servetop.core.arrays import IntArray
from servetop.core.histogram import LogHistogram, bucket_values

Percentiles = tuple[float, float, float]
"""p50, p90 and p99 in seconds."""
_UNKNOWN = (math.nan, math.nan, math.nan)
_RANKS = np.array([0.5, 0.9, 0.99])


def sliding_percentiles(
    windows: Sequence[tuple[int, int]], histograms: Callable[[int, int], Sequence[LogHistogram]]
) -> list[Percentiles]:
    """Return p50, p90 and p99 in seconds of each window [start, stop), as `LogHistogram.percentiles` computes them.

    `histograms` returns those of the ticks between two positions. NaN if nothing was measured in a window.
    """
    found = [_UNKNOWN] * len(windows)
    starts, stops = np.array(windows, dtype=np.int64).reshape(-1, 2).T
    edges, numbers = np.unique((starts, stops), return_inverse=True)
    starts, stops = numbers.reshape(2, -1)
    counts, lowest = _counts_by_stretch(edges, _covered(starts, stops, edges.size), histograms)
    until = np.concatenate((np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)))
    inside = until[stops] - until[starts]
    measured = np.flatnonzero(inside.any(axis=1))
    for number, percentiles in zip(measured.tolist(), _percentiles_of_rows(inside[measured], lowest), strict=True):
        found[number] = percentiles
    return found


def neighbouring_percentiles(
    windows: Sequence[tuple[int, int]], histograms: Callable[[int, int], Sequence[LogHistogram]]
) -> list[Percentiles]:
    """Return `sliding_percentiles` of windows in order of time, without a gap between them.

    If nothing was measured in any of them, which is all of a watch, their histograms are only looked at.
    """
    if any(each.buckets.size for each in histograms(windows[0][0], windows[-1][1])):
        return sliding_percentiles(windows, histograms)
    return [_UNKNOWN] * len(windows)


def _covered(starts: IntArray, stops: IntArray, edges: int) -> IntArray:
    """Return the stretches between neighbouring edges that lie in a window; several windows may share one."""
    opened, closed = (np.bincount(each, minlength=edges) for each in (starts, stops))
    return np.flatnonzero(np.cumsum(opened - closed) > 0)


def _counts_by_stretch(
    edges: IntArray, covered: IntArray, histograms: Callable[[int, int], Sequence[LogHistogram]]
) -> tuple[IntArray, int]:
    """Counts of each stretch by bucket, shape (edges, buckets), and the number of the first bucket."""
    parts: list[LogHistogram] = []
    stretches: list[int] = []
    for stretch in covered.tolist():
        parts += (part for part in histograms(int(edges[stretch]), int(edges[stretch + 1])) if part.buckets.size)
        stretches += [stretch] * (len(parts) - len(stretches))
    if not parts:
        return np.zeros((edges.size, 0), dtype=np.int64), 0
    buckets = np.concatenate([part.buckets for part in parts]).astype(np.int64)
    counts = np.concatenate([part.counts for part in parts])
    lowest = int(buckets.min())
    size = int(buckets.max()) - lowest + 1
    cells = np.repeat(stretches, [part.buckets.size for part in parts]) * size + buckets - lowest
    sums = np.bincount(cells, weights=counts, minlength=edges.size * size).astype(np.int64)
    return sums.reshape(-1, size), lowest


def _percentiles_of_rows(counts: IntArray, lowest: int) -> list[Percentiles]:
    """Return the percentiles of each row of counts by bucket, none of them empty, by one search in all rows at once."""
    rows, size = counts.shape
    if not rows:
        return []
    cumulative = np.cumsum(counts)
    before = np.concatenate(([0], cumulative[size - 1 : -1 : size]))[:, None]
    ranks = _RANKS * (counts.sum(axis=1) - 1)[:, None]
    below, above = (
        bucket_values(np.searchsorted(cumulative, before + edge, side="right") % size + lowest)
        for edge in (np.floor(ranks), np.ceil(ranks))
    )
    values = below + (above - below) * (ranks - np.floor(ranks))
    return [(p50, p90, p99) for p50, p90, p99 in values.tolist()]
