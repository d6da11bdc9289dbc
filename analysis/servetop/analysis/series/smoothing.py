"""Smoothed rates of charts: trailing means over a few seconds, and the spread of the one-second rates around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.tick import TICK_SECONDS

SMOOTHED_SECONDS = 5.0
"""Length of the trailing window; bins that are longer are averaged over their own length."""
_TICKS = round(SMOOTHED_SECONDS / TICK_SECONDS)
_SECOND = round(1.0 / TICK_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmoothedRate:
    """A rate per second at the end of each time bin, over the trailing window; NaN in bins without ticks."""

    mean: FloatArray
    spread: FloatArray
    """Standard deviation of the rates over one second in the window; shape (bins,)."""
    peak: FloatArray
    """The largest rate over one second of the window; shape (bins,)."""


def smoothed_rate(history: TickHistory, column: str, *, bins: Sequence[tuple[int, int]], width: int) -> SmoothedRate:
    """Return the rate of a counted column for bins [start, stop) of tick positions, `width` ticks each.

    Seconds before the first tick of the run count as zero.
    """
    if not bins:
        nothing = np.empty(0)
        return SmoothedRate(mean=nothing, spread=nothing, peak=nothing)
    length = max(width, _TICKS)
    stops = np.array([stop for _, stop in bins])
    first = int(stops[0]) - length
    counts = history.column(column, start=max(first, 0), stop=int(stops[-1]))
    counts = np.concatenate((np.zeros(max(-first, 0)), np.nan_to_num(counts)))
    sums = np.concatenate(([0.0], np.cumsum(counts)))
    begins = stops - stops[0]
    mean = (sums[begins + length] - sums[begins]) / (length * TICK_SECONDS)
    seconds = (sums[_SECOND:] - sums[:-_SECOND]) / (_SECOND * TICK_SECONDS)
    rates = np.lib.stride_tricks.sliding_window_view(seconds, length - _SECOND + 1)[begins]
    empty = np.array([start == stop for start, stop in bins])
    known = [np.where(empty, np.nan, each) for each in (mean, rates.std(axis=1), rates.max(axis=1))]
    return SmoothedRate(mean=known[0], spread=known[1], peak=known[2])
