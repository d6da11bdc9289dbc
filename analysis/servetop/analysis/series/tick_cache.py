"""A sequence of ticks that keeps only the newest in memory and reads older ones again on demand."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import overload

from servetop.core.tick import ClientTick, Tick

ReadTicks = Callable[[int, int], Sequence[Tick]]
"""Reads the ticks with indexes from the first to the second, both included."""
BLOCK = 16
"""Ticks that are evicted, and read again, together."""
_MOST_BLOCKS = 128
"""Most recently used blocks that are kept after reading."""


class TickCache(Sequence[Tick]):
    """All ticks by position. A tick that cannot be read again is returned without its distributions."""

    def __init__(self, read: ReadTicks | None = None) -> None:
        self.indexes = array("q")
        """Index of each tick in the run."""
        self.away = 0
        """Ticks before this position are not in memory."""
        self._read = read
        self._newest: list[Tick] = []
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
        if position >= self.away:
            return self._newest[position - self.away]
        return self._block(position // BLOCK)[position % BLOCK]

    def _between(self, start: int, stop: int) -> list[Tick]:
        old: list[Tick] = []
        for position in range(start, min(stop, self.away)):
            if not old or position % BLOCK == 0:
                block = self._block(position // BLOCK)
            old.append(block[position % BLOCK])
        return [*old, *self._newest[max(start - self.away, 0) : max(stop - self.away, 0)]]

    def extend(self, ticks: Sequence[Tick]) -> None:
        """Add the next ticks, in order."""
        self.indexes.extend([tick.client.index for tick in ticks])
        self._newest.extend(ticks)

    def drop(self, count: int) -> None:
        """Drop the first ticks for good; positions move down. Not for a sequence that evicts ticks."""
        del self.indexes[:count], self._newest[:count]

    def may_leave(self, *, keep: int) -> int:
        """Position before which ticks can be evicted so that about `keep` stay: whole blocks.

        Without a way to read them again, none can.
        """
        return self.away if self._read is None else max((len(self) - keep) // BLOCK * BLOCK, self.away)

    def put_away(self, stop: int) -> None:
        """Evict the ticks before position `stop`."""
        del self._newest[: stop - self.away]
        self.away = stop

    def _block(self, number: int) -> list[Tick]:
        if number not in self._blocks:
            numbers = self.indexes[number * BLOCK : (number + 1) * BLOCK]
            found = {} if self._read is None else {tick.index: tick for tick in self._read(numbers[0], numbers[-1])}
            self._blocks[number] = [found.get(each) or Tick(client=ClientTick(index=each)) for each in numbers]
            if len(self._blocks) > _MOST_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]
