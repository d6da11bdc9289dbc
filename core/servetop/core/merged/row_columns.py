"""Columns of ticks of which one row may stand for many: the same values as of the ticks made from it, without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from servetop.core.arrays import FloatArray, IntArray, np
from servetop.core.merged.sample_columns import SampleColumns, distinct
from servetop.core.merged.tick_rows import TickRow, last_tick, ticks_in
from servetop.core.tick import ClientTick, Tick


class RowColumns:
    """Columns of the ticks of some rows; each has the shape (ticks,)."""

    def __init__(self, rows: Sequence[TickRow]) -> None:
        self._rows = rows
        self._clients, self._which = distinct(list(_clients_of(rows)))
        """The client's parts that differ, and which of them each row has."""
        self._samples = SampleColumns([row.engine for row in rows], [ticks_in(row) for row in rows])

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def indexes(self) -> IntArray:
        """The index of each tick."""
        return indexes_of(self._rows)

    def client(self, read: Callable[[ClientTick], float]) -> FloatArray:
        """Return what `read` returns of the client's part of each tick, which is the same in all of a row."""
        values = np.array([read(client) for client in self._clients], dtype=np.float64)
        return self._samples.each(values[self._which])

    def row_values(self, read: Callable[[TickRow], float]) -> FloatArray:
        """Return what `read` returns of the row of each tick."""
        return self._samples.each(np.array([read(row) for row in self._rows], dtype=np.float64))

    def engine(self, name: str) -> FloatArray:
        """Return a field of the engine's sample of each tick; NaN if unknown or out of bounds."""
        return self._samples.column(name)


def _clients_of(rows: Sequence[TickRow]) -> Iterator[ClientTick]:
    """Yield the client's part of each row; one of any index for following rows of a watch with the same settings."""
    last = ClientTick(index=0)
    for row in rows:
        client = last_tick(row).client
        if isinstance(row, Tick) and _values(client) != _NOTHING:
            yield client
            continue
        if last.gauges is not client.gauges:
            last = ClientTick(index=client.index, gauges=client.gauges)
        yield last


_values = attrgetter(*(name for name in ClientTick.__slots__ if name not in ("index", "gauges")))
_NOTHING = _values(ClientTick(index=0))
"""What a client has counted and measured in a tick of a watch, and otherwise where nothing was sent or arrived."""


def indexes_of(rows: Sequence[TickRow]) -> IntArray:
    """Return the index of each tick of some rows; shape (ticks,)."""
    last = np.array([last_tick(row).index for row in rows], dtype=np.int64)
    counts = np.array([ticks_in(row) for row in rows], dtype=np.int64)
    ends = np.cumsum(counts)
    return np.asarray(np.repeat(last - ends + 1, counts) + np.arange(counts.sum()), dtype=np.int64)
