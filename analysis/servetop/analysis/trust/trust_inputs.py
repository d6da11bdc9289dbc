"""Inputs of the trust meter that a window and a summary compute in the same way."""

from __future__ import annotations

import math

from servetop.analysis.trust.trust import COUNT_LIMIT
from servetop.core.arrays import FloatArray
from servetop.core.histogram import LogHistogram


def is_stamped(stamped: float, chunks: float) -> bool:
    """Whether the kernel timestamped all chunks except a fraction of at most COUNT_LIMIT."""
    return chunks > 0 and stamped >= (1 - COUNT_LIMIT) * chunks


def itl_uncertainty(uncertain: LogHistogram, gaps: float) -> float:
    """Return the seconds within which 99 % of all gaps, including exactly known ones, are known; NaN without gaps."""
    if not gaps:
        return math.nan
    exact = 1 - uncertain.count / gaps
    return uncertain.percentile(100 * (0.99 - exact) / (1 - exact)) if exact < 0.99 else 0.0


def limit_in_force(limits: FloatArray, queued: FloatArray) -> int | None:
    """Return the concurrency limit of ticks with queued requests, or of all if there are none; None if it varied."""
    relevant = limits[queued > 0] if (queued > 0).any() else limits
    distinct = {limit for limit in relevant.tolist() if math.isfinite(limit)}
    return int(distinct.pop()) if len(distinct) == 1 else None
