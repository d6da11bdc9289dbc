"""Sums, minima and maxima over the ticks before each, and the first ticks of a condition."""

from __future__ import annotations

import math

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.tick import TICK_SECONDS


def ticks_of(seconds: float) -> int:
    """Return the number of ticks in some seconds, at least 1."""
    return max(1, round(seconds / TICK_SECONDS))


def trailing_sum(values: FloatArray | BoolArray, ticks: int) -> FloatArray:
    """Sum each value and those before it, `ticks` in all, or as many as there are; NaN and infinite ones count as 0."""
    known = values if values.dtype == np.bool_ else np.where(np.isfinite(values), values, 0.0)
    sums = known.cumsum(dtype=np.float64)
    found = sums.copy()
    found[ticks:] -= sums[: max(sums.size - ticks, 0)]
    return found


def trailing_max(values: FloatArray, ticks: int) -> FloatArray:
    """Return the maximum of each value and those before it, `ticks` in all; -inf if all are NaN."""
    found = np.concatenate([np.full(ticks - 1, -np.inf), np.where(np.isnan(values), -np.inf, values)])
    width = 1  # each entry is the maximum of this many from it on
    while width < ticks and values.size:
        step = min(width, ticks - width)
        found, width = np.maximum(found[:-step], found[step:]), width + step
    return np.asarray(found) if values.size else values


def trailing_min(values: FloatArray, ticks: int) -> FloatArray:
    """Return the minimum of each value and those before it; -inf where one is NaN or fewer than `ticks` exist."""
    found = -trailing_max(np.where(np.isnan(values), np.inf, -values), ticks)
    found[: ticks - 1] = -np.inf
    return found


def trailing_all(values: BoolArray, ticks: int) -> BoolArray:
    """Whether a condition held at each tick and those before it, `ticks` in all."""
    return np.asarray(trailing_sum(values, ticks) >= ticks)


def first_in(active: BoolArray, position: int, ticks: int) -> int:
    """Return the first active tick of the last `ticks` up to `position`; `position` if there is none."""
    start = max(0, position + 1 - ticks)
    found = np.flatnonzero(active[start : position + 1])
    return start + int(found[0]) if found.size else position


def first_after(calm: BoolArray, position: int, ticks: int) -> int:
    """Return the tick after the last calm one of the last `ticks` up to `position`; the oldest if none was calm."""
    start = max(0, position + 1 - ticks)
    found = np.flatnonzero(calm[start : position + 1])
    return min(start + int(found[-1]) + 1, position) if found.size else start


def or_zero(values: FloatArray) -> FloatArray:
    """Return the values, 0 for those that are NaN: numpy.nan_to_num takes five times as long for short columns."""
    return np.where(np.isnan(values), 0.0, values)


def quotient(a: FloatArray, b: FloatArray) -> FloatArray:
    """Divide, with 0 where the divisor is 0."""
    return np.divide(a, b, out=np.zeros(a.shape), where=b > 0)


def steps(values: FloatArray, first: float) -> FloatArray:
    """Return how much each value is above the one before, `first` for the first: faster than numpy.diff."""
    found = np.empty(values.shape)
    found[:1] = first
    np.subtract(values[1:], values[:-1], out=found[1:])
    return found


def last_known(values: FloatArray) -> FloatArray:
    """Return each value, or the last known one before it; NaN before the first."""
    known = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(values.size)))
    return np.where(known >= 0, values[np.maximum(known, 0)], np.nan)


def new_pages(scrape_ends: FloatArray) -> BoolArray:
    """Whether a metrics page arrived in each tick; the others repeat the one before, or have none."""
    return np.asarray(~np.isnan(scrape_ends) & (steps(scrape_ends, math.nan) != 0))


def on_next_page(values: FloatArray, scrape_ends: FloatArray) -> FloatArray:
    """Return what a counter grew by on the next page from each tick on, which is when it was seen; 0 without one."""
    positions = np.where(new_pages(scrape_ends), np.arange(values.size), values.size)
    following = np.minimum.accumulate(positions[::-1])[::-1]
    return np.append(or_zero(values), 0.0)[following]


def page_gaps(scrape_ends: FloatArray) -> FloatArray:
    """Return the seconds since the page before, in the ticks in which a page arrived; 0 in the others."""
    before = np.append(math.nan, last_known(scrape_ends)[:-1])[: scrape_ends.size]
    return np.where(new_pages(scrape_ends), or_zero(scrape_ends - before), 0.0)
