"""The distribution summaries of a report of guidellm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_PERCENTILES = {
    "p001": 0.001, "p01": 0.01, "p05": 0.05, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9,
    "p95": 0.95, "p99": 0.99, "p999": 0.999,
}  # fmt: skip


def distribution(values: Sequence[float], weights: Sequence[float] | None = None) -> dict[str, object]:
    """Return the summary of some values, each counted `weights` times; zeros without any, as in guidellm.

    A percentile is one of the values, the first with at least that share of the weight up to it.
    """
    counts = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    known = np.asarray(values, dtype=np.float64)[counts > 0]
    counts = counts[counts > 0]
    if not known.size:
        known, counts, total = np.zeros(1), np.ones(1), 0
    else:
        total = int(counts.sum())
    order = np.argsort(known, kind="stable")
    known, counts = known[order], counts[order]
    shares = np.cumsum(counts) / counts.sum()
    mean = float(np.average(known, weights=counts))
    variance = float(np.average((known - mean) ** 2, weights=counts))
    different, positions = np.unique(known, return_inverse=True)
    found = {
        name: float(known[min(int(np.searchsorted(shares, q - 1e-12)), known.size - 1)])
        for name, q in _PERCENTILES.items()
    }
    return {
        "mean": mean,
        "median": found["p50"],
        "mode": float(different[np.argmax(np.bincount(positions, weights=counts))]),
        "variance": variance,
        "std_dev": variance**0.5,
        "min": float(known[0]),
        "max": float(known[-1]),
        "count": total,
        "total_sum": float(known @ counts) if total else 0.0,
        "percentiles": found,
    }
