"""How long a sample of one of several watched servers stands for it."""

from __future__ import annotations

import numpy as np

from servetop.analysis.series.page_rates import LONGEST_INTERVAL, watched_stale_after
from servetop.core.arrays import FloatArray

SAMPLE_LIFETIME = 3.0
"""Seconds after which a sample does not stand for a server any more that has not been read since."""
LONGEST_LIFETIME = 2 * LONGEST_INTERVAL
"""Seconds for which a sample stands for a server at most, however rarely a Prometheus server has new ones."""


def rare_lifetimes(ends: FloatArray) -> FloatArray:
    """Return the seconds for which each sample that a Prometheus server has of a server stands for it.

    `ends`: when they were scraped, seconds. The next one is expected as soon as the two before: after an outage of the
    Prometheus server too.
    """
    gaps = np.diff(ends)
    least = np.minimum(gaps, np.concatenate([gaps[:1], gaps[:-1]])) if gaps.size else gaps
    intervals = np.concatenate([np.zeros(min(ends.size, 1)), least])
    return np.maximum(watched_stale_after(intervals), SAMPLE_LIFETIME)
