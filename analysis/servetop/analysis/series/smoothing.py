"""Smoothed rates of charts: trailing means over a few seconds, and the range of most one-second rates over more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.tick import TICK_SECONDS

SMOOTHED_SECONDS = 5.0
"""Length of the trailing window; bins that are longer are averaged over their own length."""
RANGE_SECONDS = 15.0
"""Length of the trailing window of the range: fewer one-second rates make its edges as restless as the rates."""
_TICKS, _RANGE_TICKS = (round(seconds / TICK_SECONDS) for seconds in (SMOOTHED_SECONDS, RANGE_SECONDS))
_SECOND = round(1.0 / TICK_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmoothedRate:
    """A rate per second at the end of each time bin, over the trailing window; NaN in bins without ticks."""

    mean: FloatArray
    low: FloatArray
    """One standard deviation below the mean of the one-second rates in the longer window, at least 0; shape (bins,)."""
    high: FloatArray
    """One standard deviation above it; shape (bins,)."""
    peak: FloatArray
    """The largest rate over one second of the window; shape (bins,)."""


def smoothed_rate(history: TickHistory, column: str, *, bins: Sequence[tuple[int, int]], width: int) -> SmoothedRate:
    """Return the rate of a counted column for bins [start, stop) of tick positions, `width` ticks each.

    Seconds before the first tick of the run count as zero.
    """
    if not bins:
        nothing = np.empty(0)
        return SmoothedRate(mean=nothing, low=nothing, high=nothing, peak=nothing)
    length, longer = max(width, _TICKS), max(width, _RANGE_TICKS)
    stops = np.array([stop for _, stop in bins])
    first = int(stops[0]) - longer
    counts = history.column(column, start=max(first, 0), stop=int(stops[-1]))
    counts = np.concatenate((np.zeros(max(-first, 0)), np.nan_to_num(counts)))
    sums = np.concatenate(([0.0], np.cumsum(counts)))
    begins = stops - stops[0]
    ends = begins + longer
    mean = (sums[ends] - sums[ends - length]) / (length * TICK_SECONDS)
    seconds = (sums[_SECOND:] - sums[:-_SECOND]) / (_SECOND * TICK_SECONDS)
    rates = np.lib.stride_tricks.sliding_window_view(seconds, longer - _SECOND + 1)[begins]
    low, high = (np.maximum(rates.mean(axis=1) + side * rates.std(axis=1), 0.0) for side in (-1, 1))
    peak = rates[:, longer - length :].max(axis=1)
    empty = np.array([start == stop for start, stop in bins])
    known = [np.where(empty, np.nan, each) for each in (mean, low, high, peak)]
    return SmoothedRate(mean=known[0], low=known[1], high=known[2], peak=known[3])
