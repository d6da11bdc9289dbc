"""Where a curve turns: the load beyond which latency rises faster than load.

Kneedle (Satopää, Albrecht, Irwin, Raghavan: "Finding a 'Kneedle' in a Haystack", ICDCS workshops 2011, section III),
for an increasing convex curve: both axes are scaled to 0-1, and the knee is where the curve lies furthest below its
chord. The paper's smoothing is left out: a point here is a whole stage, not a sample; and latency has to rise at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FEWEST_POINTS = 3
RISES = 1.5
"""Last latency / first latency; a smaller rise is noise on a flat line, which scaling would magnify."""
SHARPEST_AT_LEAST = 0.2
"""Distance below the chord, of the scaled curve; a straight line has 0, a right angle 1."""


def knee(loads: Sequence[float], latencies: Sequence[float]) -> int | None:
    """Position of the knee among points by ascending load; None for a curve without one, or too few points.

    Latencies that fall again count as flat: the search uses their running maximum.
    """
    x, y = np.asarray(loads, dtype=np.float64), np.maximum.accumulate(np.asarray(latencies, dtype=np.float64))
    if x.size < FEWEST_POINTS or not np.isfinite(y).all() or x[-1] <= x[0] or y[-1] <= max(RISES * y[0], 0):
        return None
    below = (x - x[0]) / (x[-1] - x[0]) - (y - y[0]) / (y[-1] - y[0])
    found = int(np.argmax(below))
    return found if below[found] >= SHARPEST_AT_LEAST else None
