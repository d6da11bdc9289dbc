"""A sequence of ticks that keeps the newest in memory and reads older ones again on demand."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import overload

from servetop.core.merged.row_columns import indexes_of
from servetop.core.merged.tick_rows import TickRows
from servetop.core.tick import ClientTick, Tick

ReadTicks = Callable[[int, int], Sequence[Tick]]
"""Reads the ticks with indexes from the first to the second argument, inclusive."""
BLOCK = 16
"""Number of ticks that are evicted, and read again, together."""
_MAX_BLOCKS = 128
"""Maximum blocks that are kept after reading, the most recently used ones."""


class TickCache(Sequence[Tick]):
    """All ticks by position. A tick that cannot be read again is returned without its distributions."""

    def __init__(self, read: ReadTicks | None = None) -> None:
        self.indexes = array("q")
        """Index of each tick in the run."""
        self.kept = 0
        """Number of the first ticks that are never evicted, because rows that stand for many are small."""
        self.evicted = 0
        """Position of the first tick after the evicted ones: those from `kept` on before it are not in memory."""
        self._read = read
        self._first = TickRows()
        self._newest = TickRows()
        self._blocks: OrderedDict[int, list[Tick]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.indexes)

    @overload
    def __getitem__(self, at: int) -> Tick: ...

    @overload
    def __getitem__(self, at: slice) -> list[Tick]: ...

    def __getitem__(self, at: int | slice) -> Tick | list[Tick]:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            return self._between(start, stop) if step == 1 else [self[each] for each in range(start, stop, step)]
        position = range(len(self))[at]
        if position < self.kept:
            return self._first[position]
        if position >= self.evicted:
            return self._newest[position - self.evicted]
        return self._block((position - self.kept) // BLOCK)[(position - self.kept) % BLOCK]

    def measured(self, start: int, stop: int) -> list[Tick]:
        """Return the ticks between two positions, without those in which nothing was sent and that were not kept."""
        plain = self._first.plain(start, min(stop, self.kept))
        return plain + self._between(max(start, self.kept), stop)

    def _between(self, start: int, stop: int) -> list[Tick]:
        old = self._first[start : min(stop, self.kept)]
        block: list[Tick] = []
        for position in range(max(start, self.kept) - self.kept, min(stop, self.evicted) - self.kept):
            if not block or position % BLOCK == 0:
                block = self._block(position // BLOCK)
            old.append(block[position % BLOCK])
        return [*old, *self._newest[max(start - self.evicted, 0) : max(stop - self.evicted, 0)]]

    def extend(self, ticks: Sequence[Tick]) -> None:
        """Append the next ticks, in order."""
        rows = ticks if isinstance(ticks, TickRows) else TickRows(ticks)
        if rows.merged:
            self.indexes.frombytes(indexes_of(rows.rows).tobytes())
        else:
            self.indexes.extend([tick.client.index for tick in rows])
        if rows.merged and self.evicted == self.kept:
            early, rows = rows.split_after_merged()
            self._first.extend(self._newest)
            self._first.extend(early)
            self._newest, self.kept = TickRows(), len(self._first)
            self.evicted = self.kept
        self._newest.extend(rows)

    def drop(self, count: int) -> None:
        """Drop the first ticks permanently, so that positions decrease. Not valid after `evict`."""
        del self.indexes[:count]
        early = min(count, self.kept)
        self._first.drop_first(early)
        self._newest.drop_first(count - early)
        self.kept = self.evicted = self.kept - early

    def evictable_before(self, *, keep: int) -> int:
        """Return the position before which whole blocks can be evicted so that about `keep` ticks remain.

        Without a function to read ticks again, none can be evicted.
        """
        evictable = max((len(self) - self.kept - keep) // BLOCK * BLOCK, 0)
        return self.evicted if self._read is None else max(self.kept + evictable, self.evicted)

    def evict(self, stop: int) -> None:
        """Evict the ticks before position `stop`."""
        self._newest.drop_first(stop - self.evicted)
        self.evicted = stop

    def _block(self, number: int) -> list[Tick]:
        if number not in self._blocks:
            indexes = self.indexes[self.kept + number * BLOCK : self.kept + (number + 1) * BLOCK]
            ticks = {} if self._read is None else {tick.index: tick for tick in self._read(indexes[0], indexes[-1])}
            self._blocks[number] = [ticks.get(index) or Tick(client=ClientTick(index=index)) for index in indexes]
            if len(self._blocks) > _MAX_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]
