"""Columns of ticks of which one row may stand for many: the same values as of the ticks made from it, without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from servetop.core.arrays import FloatArray, np
from servetop.core.merged.sample_columns import SampleColumns
from servetop.core.merged.tick_rows import TickRow, ticks_in
from servetop.core.tick import ClientTick


class RowColumns:
    """Columns of the ticks of some rows; each has the shape (ticks,)."""

    def __init__(self, rows: Sequence[TickRow]) -> None:
        self._rows = rows
        self._clients = [row.client for row in rows]
        self._samples = SampleColumns([row.engine for row in rows], [ticks_in(row) for row in rows])

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def indexes(self) -> list[int]:
        """The index of each tick."""
        last = np.array([client.index for client in self._clients], dtype=np.int64)
        counts, number = self._samples.counts, self._samples.number
        found: list[int] = (np.repeat(last - counts, counts) + number).tolist()
        return found

    def client(self, read: Callable[[ClientTick], float]) -> FloatArray:
        """Return what `read` returns of the client's part of each tick, which is the same in all of a row."""
        return np.array([read(client) for client in self._clients], dtype=np.float64)[self._samples.row_of]

    def row_values(self, read: Callable[[TickRow], float]) -> FloatArray:
        """Return what `read` returns of the row of each tick."""
        return np.array([read(row) for row in self._rows], dtype=np.float64)[self._samples.row_of]

    def engine(self, name: str) -> FloatArray:
        """Return a field of the engine's sample of each tick; NaN if unknown or out of bounds."""
        return self._samples.column(name)
