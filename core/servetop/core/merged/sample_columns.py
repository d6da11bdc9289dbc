"""Columns of samples of which one may stand for many: the same values as of the samples made from it, without them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

from servetop.core.arrays import FloatArray, IntArray, np
from servetop.core.bounds import all_bounded, bounded
from servetop.core.events import EngineSample
from servetop.core.merged.merged_sample import CONTINUOUS, MERGED_SECONDS, RISING, TIMES, MergedSample

_Value = TypeVar("_Value")


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
        self._rows = len(rows)
        self._distinct, self._which = distinct([last_of(each) for each in rows])
        """The samples that differ from those before, such as the first of the ticks up to the next metrics page."""
        self._place = np.array([at for at, each in enumerate(rows) if isinstance(each, MergedSample)], dtype=np.int64)
        self._merged = [each for each in rows if isinstance(each, MergedSample)]
        """The rows that stand for several samples, and their places."""
        self._peaked = {name for each in self._merged for name in each.peaks}
        """Fields of which a row has the maximum."""

    def __len__(self) -> int:
        return self.row_of.size

    def column(self, name: str) -> FloatArray:
        """Return a field of each sample; NaN if unknown or out of bounds."""
        values = _column(self._distinct, name)[self._which]
        if name in RISING:
            return self._rising(name, values)
        if name not in self._peaked:
            return self.each(values)
        peaks = self._of_merged([bounded(each.peaks.get(name)) for each in self._merged], other=math.nan)
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

    @cached_property
    def _still_to_rise(self) -> FloatArray:
        """The share of its row's increase that each sample lacks: 0 for the last one."""
        return np.asarray(1 - self.number / self.counts[self.row_of])

    def _of_merged(self, values: Sequence[float] | FloatArray, *, other: float) -> FloatArray:
        """Return the values of the rows that stand for several samples, and `other` for all others."""
        found = np.full(self._rows, other)
        found[self._place] = values
        return found

    def _rising(self, name: str, values: FloatArray) -> FloatArray:
        if np.isnan(values).all():
            return self.each(values)
        before = self._of_merged(_column([each.before for each in self._merged], name), other=math.nan)
        steps = np.where(before < values, values - before, 0.0)  # False for NaN
        if name in TIMES:
            held = self._of_merged([each.before is None for each in self._merged], other=0.0)
            steps = np.where(held > 0, np.minimum(MERGED_SECONDS, values), steps)
        steps = steps[self.row_of]
        rest = steps * self._still_to_rise
        rest = rest if name in CONTINUOUS else np.minimum(np.ceil(rest - 1e-9), steps)
        return np.asarray(values[self.row_of] - rest)


class HighestColumns:
    """Columns of the last sample of each of some rows, with the maxima of its gauges; each has the shape (rows,)."""

    def __init__(self, rows: Sequence[EngineSample | MergedSample]) -> None:
        self._last = [row.sample if isinstance(row, MergedSample) else row for row in rows]
        self._peaks = [(at, row.peaks) for at, row in enumerate(rows) if isinstance(row, MergedSample) and row.peaks]

    def column(self, name: str) -> FloatArray:
        """Return a field of each row; NaN if unknown or out of bounds."""
        found = _column(self._last, name)
        if highest := [(at, bounded(peaks[name])) for at, peaks in self._peaks if name in peaks]:
            places, values = zip(*highest, strict=True)
            found[list(places)] = values
        return found


def is_uniform(values: FloatArray) -> bool:
    """Whether all values are the same, or all NaN; of none, and of an array that repeats one in memory, they are."""
    if values.size < 2 or values.strides == (0,):
        return True
    first, last = values[0], values[-1]
    if math.isnan(first):
        return bool(math.isnan(last) and np.isnan(values).all())
    return bool(first == last and (values == first).all())


def last_of(row: EngineSample | MergedSample | None) -> EngineSample | None:
    """Return the last sample of a row."""
    return row.sample if isinstance(row, MergedSample) else row


def distinct(values: Sequence[_Value]) -> tuple[list[_Value], IntArray]:
    """Return the objects of a sequence, those in a row once, and which of them each entry is; shape (values,)."""
    starts = np.array([at == 0 or each is not values[at - 1] for at, each in enumerate(values)], dtype=np.bool_)
    return [each for each, first in zip(values, starts.tolist(), strict=True) if first], np.cumsum(starts) - 1


def _column(samples: Sequence[EngineSample | None], name: str) -> FloatArray:
    read = attrgetter(name)
    return all_bounded([None if each is None else read(each) for each in samples], name=name)
