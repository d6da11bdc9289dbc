"""Columns of ticks of which one row may stand for many: the same values as of the ticks made from it, without them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter

from servetop.core.arrays import FloatArray, np
from servetop.core.bounds import all_bounded, bounded
from servetop.core.events import EngineSample
from servetop.core.merged.merged_sample import CONTINUOUS, MERGED_SECONDS, RISING, TIMES, MergedSample
from servetop.core.merged.tick_rows import TickRow, ticks_in
from servetop.core.tick import ClientTick


class RowColumns:
    """Columns of the ticks of some rows; each has the shape (ticks,)."""

    def __init__(self, rows: Sequence[TickRow]) -> None:
        self._rows = rows
        self._counts = np.array([ticks_in(row) for row in rows], dtype=np.int64)
        self._row_of = np.repeat(np.arange(len(rows)), self._counts)
        ends = np.cumsum(self._counts)
        self._number = np.arange(self._row_of.size) - np.repeat(ends - self._counts, self._counts) + 1
        """The place of each tick in its row, from 1."""
        self._clients = [row.client for row in rows]
        samples = [row.engine for row in rows]
        self._merged = [each if isinstance(each, MergedSample) else None for each in samples]
        self._plain = [each.sample if isinstance(each, MergedSample) else each for each in samples]
        self._before = [None if each is None else each.before for each in self._merged]

    def __len__(self) -> int:
        return self._row_of.size

    @property
    def indexes(self) -> list[int]:
        """The index of each tick."""
        last = np.array([client.index for client in self._clients], dtype=np.int64)
        found: list[int] = (np.repeat(last - self._counts, self._counts) + self._number).tolist()
        return found

    def client(self, read: Callable[[ClientTick], float]) -> FloatArray:
        """Return what `read` returns of the client's part of each tick, which is the same in all of a row."""
        return np.array([read(client) for client in self._clients], dtype=np.float64)[self._row_of]

    def row_values(self, read: Callable[[TickRow], float]) -> FloatArray:
        """Return what `read` returns of the row of each tick."""
        return np.array([read(row) for row in self._rows], dtype=np.float64)[self._row_of]

    def engine(self, name: str) -> FloatArray:
        """Return a field of the engine's sample of each tick; NaN if unknown or out of bounds."""
        values = _column(self._plain, name)
        if name in RISING:
            return self._rising(name, values)
        peaks = np.array(
            [math.nan if each is None else bounded(each.peaks.get(name)) for each in self._merged], dtype=np.float64
        )
        known = ~np.isnan(peaks)
        if not known.any():
            return values[self._row_of]
        counts = np.maximum(self._counts, 2)
        rest = np.minimum(np.maximum((values * counts - peaks) / (counts - 1), 0.0), peaks)
        at_peak = known[self._row_of] & (self._number == ((self._counts + 1) // 2)[self._row_of])
        return np.where(at_peak, peaks[self._row_of], np.where(known, rest, values)[self._row_of])

    def _rising(self, name: str, values: FloatArray) -> FloatArray:
        before = _column(self._before, name)
        steps = np.where(before < values, values - before, 0.0)  # False for NaN
        if name in TIMES:
            held = np.array([each is not None and each.before is None for each in self._merged], dtype=np.bool_)
            steps = np.where(held, MERGED_SECONDS, steps)
        rest = steps[self._row_of] * (1 - self._number / self._counts[self._row_of])
        return np.asarray(values[self._row_of] - (rest if name in CONTINUOUS else np.ceil(rest - 1e-9)))


def _column(samples: Sequence[EngineSample | None], name: str) -> FloatArray:
    read = attrgetter(name)
    return all_bounded([None if each is None else read(each) for each in samples])
