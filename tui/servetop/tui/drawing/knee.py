"""The knee of a latency curve: the load beyond which latency rises faster than load.

Kneedle (Satopää, Albrecht, Irwin, Raghavan: "Finding a 'Kneedle' in a Haystack", ICDCS workshops 2011, section III),
for an increasing convex curve: both axes are scaled to 0..1, and the knee is where the curve lies furthest below its
chord. The paper's smoothing is omitted, because a point is a whole stage, not a sample, and a minimum rise is required.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MIN_POINTS = 3
MIN_RISE = 1.5
"""Minimum last latency / first latency; a smaller rise is noise, which scaling would magnify."""
MIN_DISTANCE = 0.2
"""Minimum distance of the scaled curve below its chord; 0 for a straight line, 1 for a right angle."""


def knee(loads: Sequence[float], latencies: Sequence[float]) -> int | None:
    """Return the index of the knee among points by ascending load; None if there is none, or too few points.

    Decreasing latencies are treated as flat: the search uses the running maximum.
    """
    x, y = np.asarray(loads, dtype=np.float64), np.maximum.accumulate(np.asarray(latencies, dtype=np.float64))
    if x.size < MIN_POINTS or not np.isfinite(y).all() or x[-1] <= x[0] or y[-1] <= max(MIN_RISE * y[0], 0):
        return None
    below = (x - x[0]) / (x[-1] - x[0]) - (y - y[0]) / (y[-1] - y[0])
    furthest = int(np.argmax(below))
    return furthest if below[furthest] >= MIN_DISTANCE else None
