"""Columns of samples of which one may stand for many: the same values as of the samples made from it, without them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from servetop.core.arrays import FloatArray, np
from servetop.core.bounds import all_bounded, bounded
from servetop.core.events import EngineSample
from servetop.core.merged.merged_sample import CONTINUOUS, MERGED_SECONDS, RISING, TIMES, MergedSample


class SampleColumns:
    """Columns of the samples of some rows; each has the shape (samples,)."""

    def __init__(self, rows: Sequence[EngineSample | MergedSample | None], counts: Sequence[int] | None = None) -> None:
        """`counts` is what each row stands for, where that is not the count of the sample itself."""
        found = [each.count if isinstance(each, MergedSample) else 1 for each in rows] if counts is None else counts
        self.counts = np.array(found, dtype=np.int64)
        """The number of samples of each row."""
        self.row_of = np.repeat(np.arange(len(rows)), self.counts)
        """The row of each sample."""
        ends = np.cumsum(self.counts)
        self.number = np.arange(self.row_of.size) - np.repeat(ends - self.counts, self.counts) + 1
        """The place of each sample in its row, from 1."""
        self._merged = [each if isinstance(each, MergedSample) else None for each in rows]
        self._plain = [each.sample if isinstance(each, MergedSample) else each for each in rows]
        self._before = [None if each is None else each.before for each in self._merged]
        self._peaked = {name for each in self._merged if each is not None for name in each.peaks}
        """Fields of which a row has the maximum."""

    def __len__(self) -> int:
        return self.row_of.size

    def column(self, name: str) -> FloatArray:
        """Return a field of each sample; NaN if unknown or out of bounds."""
        values = _column(self._plain, name)
        if name in RISING:
            return self._rising(name, values)
        if name not in self._peaked:
            return self.each(values)
        peaks = np.array(
            [math.nan if each is None else bounded(each.peaks.get(name)) for each in self._merged], dtype=np.float64
        )
        known = ~np.isnan(peaks)
        if not known.any():
            return self.each(values)
        counts = np.maximum(self.counts, 2)
        rest = np.minimum(np.maximum((values * counts - peaks) / (counts - 1), 0.0), peaks)
        at_peak = known[self.row_of] & (self.number == ((self.counts + 1) // 2)[self.row_of])
        return np.where(at_peak, peaks[self.row_of], np.where(known, rest, values)[self.row_of])

    def each(self, values: FloatArray) -> FloatArray:
        """Return the value of its row for each sample; read-only, and without memory, if it is the same for all."""
        if values.size and is_uniform(values):
            return np.broadcast_to(values[0], self.row_of.shape)
        return values[self.row_of]

    def _rising(self, name: str, values: FloatArray) -> FloatArray:
        if np.isnan(values).all():
            return self.each(values)
        before = _column(self._before, name)
        steps = np.where(before < values, values - before, 0.0)  # False for NaN
        if name in TIMES:
            held = np.array([each is not None and each.before is None for each in self._merged], dtype=np.bool_)
            steps = np.where(held, np.minimum(MERGED_SECONDS, values), steps)
        steps = steps[self.row_of]
        rest = steps * (1 - self.number / self.counts[self.row_of])
        rest = rest if name in CONTINUOUS else np.minimum(np.ceil(rest - 1e-9), steps)
        return np.asarray(values[self.row_of] - rest)


def is_uniform(values: FloatArray) -> bool:
    """Whether all values are the same, or all NaN; of none, and of an array that repeats one in memory, they are."""
    if values.size < 2 or values.strides == (0,):
        return True
    first, last = values[0], values[-1]
    if math.isnan(first):
        return bool(math.isnan(last) and np.isnan(values).all())
    return bool(first == last and (values == first).all())


def _column(samples: Sequence[EngineSample | None], name: str) -> FloatArray:
    read = attrgetter(name)
    return all_bounded([None if each is None else read(each) for each in samples], name=name)
