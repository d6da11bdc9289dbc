"""Exact percentiles of pooled samples, some of which stand for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

QUANTILES = (50, 90, 99)
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def summary_ms(values: Floats, counts: Counts | None = None) -> Mapping[str, float]:
    """p50, p90, p99 and mean in milliseconds; empty input gives zeros."""
    if not len(values):
        return dict.fromkeys((*(f"p{share}" for share in QUANTILES), "mean"), 0.0)
    weights = np.ones(len(values), dtype=np.int64) if counts is None else counts
    order = np.argsort(values, kind="stable")
    ordered, ends = values[order], np.cumsum(weights[order])
    summary = {f"p{share}": 1e3 * _quantile(ordered, ends, share=share / 100) for share in QUANTILES}
    summary["mean"] = 1e3 * float(np.average(values, weights=weights))
    return summary


def expand_gaps(runs: Sequence[tuple[float, float, int, int]]) -> tuple[Floats, Counts]:
    """Runs of (first, growth, count, weight) as values and their weights."""
    if not runs:
        return np.empty(0), np.empty(0, dtype=np.int64)
    table = np.array(runs, dtype=np.float64)
    count = table[:, 2].astype(np.int64)
    starts = np.repeat(np.cumsum(count) - count, count)
    step = np.arange(int(count.sum())) - starts
    values = np.repeat(table[:, 0], count) + np.repeat(table[:, 1], count) * step
    return values, np.repeat(table[:, 3].astype(np.int64), count)


def _quantile(ordered: Floats, ends: Counts, *, share: float) -> float:
    """Linear interpolation between order statistics, as numpy does it over the repeated samples."""
    position = share * float(ends[-1] - 1)
    low = int(np.searchsorted(ends, int(position), side="right"))
    high = int(np.searchsorted(ends, min(int(position) + 1, int(ends[-1]) - 1), side="right"))
    rest = position - int(position)
    return float(ordered[low] * (1 - rest) + ordered[high] * rest)
