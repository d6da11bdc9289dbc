"""The ticks of a recording, of which one row may stand for many; they are made from the row when they are asked for."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from servetop.core.events import EngineSample
from servetop.core.merged.merged_sample import MergedSample
from servetop.core.tick import ClientTick, Tick


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergedTick:
    """The last of `count` consecutive ticks of a watch, with the means of the engine's gauges in all of them."""

    tick: Tick
    count: int
    engine: MergedSample | None
    """None if no metrics were read in any of them."""

    @property
    def first(self) -> int:
        """Index of the first of the ticks."""
        return self.tick.index - self.count + 1

    @property
    def client(self) -> ClientTick:
        """The client's part of each of the ticks, apart from its index: nothing but the settings in force."""
        return ClientTick(index=self.tick.index, gauges=self.tick.client.gauges)

    def ticks(self) -> list[Tick]:
        """Return the ticks, in order of time."""
        samples: Sequence[EngineSample | None] = [None] * self.count if self.engine is None else self.engine.samples()
        gauges, gpus = self.tick.client.gauges, self.tick.gpus
        return [
            Tick(client=ClientTick(index=index, gauges=gauges), engine=sample, gpus=gpus)
            for index, sample in enumerate(samples, start=self.first)
        ]


TickRow = Tick | MergedTick


def ticks_in(row: TickRow) -> int:
    """Return the number of ticks that a row stands for."""
    return row.count if isinstance(row, MergedTick) else 1


def first_index(row: TickRow) -> int:
    """Return the index of the first tick of a row."""
    return row.first if isinstance(row, MergedTick) else row.index


def last_tick(row: TickRow) -> Tick:
    """Return the last tick of a row, with the gauges of all its ticks."""
    return row.tick if isinstance(row, MergedTick) else row


class TickRows(Sequence[Tick]):
    """A growing sequence of ticks in rows; positions are those of ticks. Rows of several are made ticks on demand."""

    def __init__(self, rows: Iterable[TickRow] = ()) -> None:
        self._rows: list[TickRow] = []
        self._ends: list[int] = []
        """The number of ticks up to the end of each row, since the first tick ever; unused while each row is one."""
        self._dropped = 0
        """The number of ticks that were dropped at the beginning; the first row may be dropped in part."""
        self._made: tuple[MergedTick, list[Tick]] | None = None
        self.extend(rows)

    @property
    def rows(self) -> Sequence[TickRow]:
        """The rows; ticks of the first one may have been dropped."""
        return self._rows

    @property
    def merged(self) -> bool:
        """Whether a row stands for several ticks."""
        return bool(self._ends)

    def __len__(self) -> int:
        return self._ends[-1] - self._dropped if self._ends else len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Tick: ...

    @overload
    def __getitem__(self, at: slice) -> list[Tick]: ...

    def __getitem__(self, at: int | slice) -> Tick | list[Tick]:
        if not self._ends:
            return self._rows[at]  # type: ignore[return-value]  # each row is a tick
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            return self._between(start, stop) if step == 1 else [self[each] for each in range(start, stop, step)]
        position = range(len(self))[at] + self._dropped
        row = bisect.bisect_right(self._ends, position)
        return self._ticks(row)[position - self._ends[row]]

    def __iter__(self) -> Iterator[Tick]:
        return iter(self[:]) if not self._ends else self._iterated()

    def plain(self, start: int, stop: int) -> list[Tick]:
        """Return the ticks between two positions that have rows of their own."""
        if not self._ends:
            return self[start:stop]
        low = bisect.bisect_right(self._ends, start + self._dropped)
        high = bisect.bisect_left(self._ends, stop + self._dropped)
        return [row for row in self._rows[low : high + 1] if isinstance(row, Tick)] if start < stop else []

    def split_after_merged(self) -> tuple[TickRows, TickRows]:
        """Return the rows up to the last one that stands for several ticks, and those after it."""
        merged = [place for place, row in enumerate(self._rows) if isinstance(row, MergedTick)]
        after = merged[-1] + 1 if merged else 0
        return TickRows(self._rows[:after]), TickRows(self._rows[after:])

    def extend(self, rows: Iterable[TickRow]) -> None:
        """Append rows, in order of time; those of another such sequence as they are."""
        added = list(rows.rows if isinstance(rows, TickRows) and not rows._dropped else rows)
        if not self._ends and any(isinstance(row, MergedTick) for row in added):
            self._ends = list(range(self._dropped + 1, self._dropped + len(self._rows) + 1))
            merges = True
        else:
            merges = bool(self._ends)
        self._rows += added
        if merges:
            before = self._ends[-1] if self._ends else self._dropped
            self._ends += itertools.accumulate(map(ticks_in, added), initial=before)
            del self._ends[len(self._rows) - len(added)]

    def drop_first(self, count: int) -> None:
        """Drop the first ticks permanently, so that positions decrease."""
        if not self._ends:
            del self._rows[:count]
            return
        self._dropped += count
        gone = bisect.bisect_right(self._ends, self._dropped)
        del self._rows[:gone], self._ends[:gone]

    def _ticks(self, row: int) -> list[Tick]:
        found = self._rows[row]
        if isinstance(found, Tick):
            return [found]
        if self._made is None or self._made[0] is not found:
            self._made = found, found.ticks()
        return self._made[1]

    def _between(self, start: int, stop: int) -> list[Tick]:
        found: list[Tick] = []
        position, stop = start + self._dropped, stop + self._dropped
        row = bisect.bisect_right(self._ends, position)
        while position < stop:
            end = self._ends[row]
            ticks = self._ticks(row)
            begin = end - len(ticks)
            found += ticks[position - begin : stop - begin]
            position, row = end, row + 1
        return found

    def _iterated(self) -> Iterator[Tick]:
        skipped = self._dropped - (self._ends[0] - ticks_in(self._rows[0])) if self._rows else 0
        for number in range(len(self._rows)):
            ticks = self._ticks(number)
            yield from ticks[skipped:] if number == 0 else ticks
