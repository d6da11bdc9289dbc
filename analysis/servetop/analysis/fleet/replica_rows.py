"""The ticks of one of several servers in a whole recording: their columns at once, and each tick when it is asked for.

They are those of `ReplicaTicks`, which makes one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.fleet.sample_lifetimes import SAMPLE_LIFETIME, rare_lifetimes
from servetop.analysis.series.page_rates import WatchedHistory
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import EngineSample
from servetop.core.interfaces.replica_change import ReplicaChange
from servetop.core.merged.merged_sample import MergedSample
from servetop.core.merged.row_columns import RowColumns
from servetop.core.merged.sample_columns import SampleColumns
from servetop.core.merged.tick_rows import MergedTick, TickRow, TickRows, ticks_in
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick


def replica_history(
    rows: Sequence[TickRow], samples: Sequence[EngineSample | MergedSample], changes: Sequence[ReplicaChange]
) -> TickHistory:
    """Return the history of one server, from the rows of the watch, its samples and its changes, in order of time."""
    columns = _ReplicaColumns(rows, samples, changes)
    history = WatchedHistory()
    history.extend_rows(TickRows(columns.replica_rows()), columns)
    return history


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ReplicaRow(MergedTick):
    """A row of the watch that stands for several ticks, with the samples of one server."""

    make: Callable[[], list[Tick]]

    def ticks(self) -> list[Tick]:
        return self.make()


class _ReplicaColumns(RowColumns):
    """The columns of the ticks of a watch, with the samples of one server in place of their sum."""

    def __init__(
        self, rows: Sequence[TickRow], samples: Sequence[EngineSample | MergedSample], changes: Sequence[ReplicaChange]
    ) -> None:
        super().__init__(rows)
        self._source, self._sample_rows = rows, samples
        self._columns = SampleColumns(samples)
        self._ends = np.cumsum(self._columns.counts)
        self._starts = np.cumsum([0, *map(ticks_in, rows)])
        self._place, self._known = self._newest(changes)
        self._made: tuple[int, Sequence[EngineSample]] = -1, ()

    def engine(self, name: str) -> FloatArray:
        if not len(self._columns):
            return np.full(len(self), np.nan)
        return np.where(self._known, self._columns.column(name)[self._place], np.nan)

    def replica_rows(self) -> list[TickRow]:
        """Return the rows, which make their ticks when they are asked for."""
        return [self._row(number) for number in range(len(self._source))]

    def _newest(self, changes: Sequence[ReplicaChange]) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], BoolArray]:
        """Return the position of the newest sample of each tick, and whether it stands for the server then."""
        at = (self.indexes.astype(np.float64) + 1) * TICK_SECONDS
        if not len(self._columns) or not changes:
            return np.zeros(at.size, dtype=np.int64), np.zeros(at.size, dtype=np.bool_)
        ends = self._columns.column("scrape_end")
        found = np.searchsorted(np.maximum.accumulate(ends), at, side="right") - 1
        place = np.maximum(found, 0)
        state = np.searchsorted([each.at for each in changes], at, side="right") - 1
        responds = np.array([each.state.responds for each in changes], dtype=np.bool_)[np.maximum(state, 0)]
        rare = np.array([each.is_rare for each in changes], dtype=np.bool_)
        lifetimes: FloatArray | float = SAMPLE_LIFETIME
        if rare.any():
            lifetimes = np.where(rare[np.maximum(state, 0)], rare_lifetimes(ends)[place], SAMPLE_LIFETIME)
        return place, (found >= 0) & (state >= 0) & responds & (at - ends[place] <= lifetimes)

    def _row(self, number: int) -> TickRow:
        row = self._source[number]
        if isinstance(row, Tick):
            return Tick(client=row.client, engine=self._sample(int(self._starts[number])))
        tick = Tick(client=row.tick.client)
        return _ReplicaRow(tick=tick, count=row.count, engine=None, make=lambda: self._ticks(number, row))

    def _ticks(self, number: int, row: MergedTick) -> list[Tick]:
        gauges, first = row.tick.client.gauges, int(self._starts[number])
        return [
            Tick(client=ClientTick(index=row.first + place, gauges=gauges), engine=self._sample(first + place))
            for place in range(row.count)
        ]

    def _sample(self, tick: int) -> EngineSample | None:
        """Return the sample that stands for the server in a tick."""
        if not self._known[tick]:
            return None
        place = int(self._place[tick])
        number = int(self._columns.row_of[place])
        found = self._sample_rows[number]
        if isinstance(found, EngineSample):
            return found
        if self._made[0] != number:
            self._made = number, found.samples()
        return self._made[1][int(self._columns.number[place]) - 1]
