"""The mean of a figure over the starts of an engine, with its interval by Student's t.

Repeats of one start share what differs between starts (memory layout, clocks, caches, compiled kernels), so only the
means of the starts are independent of each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.statistics.student_t import quantile
from servetop.core.text import formats

CONFIDENCE = 0.95
_UP_TO = "≤"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMean:
    """A mean over starts."""

    mean: float
    starts: int
    half_width: float | None
    """Of the 95 % interval, in the unit of the mean; None for one start, which does not tell how starts differ."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the interval, from 0, as no figure of a cell is negative; None for one start."""
        if self.half_width is None:
            return None
        return max(self.mean - self.half_width, 0.0), self.mean + self.half_width

    @property
    def text(self) -> str:
        """The mean with its interval: `1,612 ±94`, or `337 [0, 767]` where that begins at 0; alone for one start."""
        if self.interval is None:
            return formats.count(self.mean)
        spread = spread_text(self.mean, self.interval)
        high = spread.removeprefix(_UP_TO)
        return f"{formats.count(self.mean)} {spread if high == spread else f'[0, {high}]'}"


def mean_of_starts(values: Sequence[float | None], starts: Sequence[int]) -> StartMean | None:
    """Return the mean over the means of the starts; `starts` has the start of each value, None was not measured.

    None if nothing was measured.
    """
    by_start: dict[int, list[float]] = {}
    for value, start in zip(values, starts, strict=True):
        if value is not None:
            by_start.setdefault(start, []).append(value)
    means = [sum(each) / len(each) for each in by_start.values()]
    count = len(means)
    if not count:
        return None
    mean = sum(means) / count
    half = None
    if count > 1:
        variance = sum((each - mean) ** 2 for each in means) / (count - 1)
        half = quantile((1 + CONFIDENCE) / 2, count - 1) * math.sqrt(variance / count)
    return StartMean(mean=mean, starts=count, half_width=half)


def spread_text(mean: float, interval: tuple[float, float]) -> str:
    """Return how far starts may be from their mean: `±94`, or `≤767`, the upper end of an interval that begins at 0."""
    low, high = interval
    return f"{_UP_TO}{formats.count(high)}" if low <= 0 < high - mean else f"±{formats.count(high - mean)}"


def repeats_text(repeats: int, starts: int) -> str:
    """Return what a mean is of: `of 3 starts`, `of 4 repeats in 2 starts`, `of 3 repeats of one start`."""
    if starts == 1:
        return f"of {repeats} repeats of one start"
    return f"of {starts} starts" if repeats == starts else f"of {repeats} repeats in {starts} starts"
