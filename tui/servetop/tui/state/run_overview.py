"""The throughput of a whole run in few numbers, for the timeline."""

from __future__ import annotations

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.tick import TICK_SECONDS


def overview(history: TickHistory, *, bins: int) -> FloatArray:
    """Output tokens/s from second 0 to the newest tick in at most `bins` bins; NaN in bins without ticks."""
    numbers, tokens = history.ticks.indexes, history.column("output_tokens")
    if not numbers:
        return tokens
    size = numbers[-1] + 1
    per_tick = np.full(size, np.nan)
    per_tick[np.array(numbers)] = tokens
    starts = np.arange(0, size, -(-size // bins))
    sums, known = (np.add.reduceat(each, starts) for each in (np.nan_to_num(per_tick), ~np.isnan(per_tick) * 1.0))
    rates: FloatArray = np.divide(sums, known * TICK_SECONDS, out=np.full(starts.size, np.nan), where=known > 0)
    return rates
