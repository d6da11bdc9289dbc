"""Growing columns of numbers, whose older entries are moved to a scratch store page by page."""

from __future__ import annotations

import bisect
import math
from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from servetop.analysis.series.scratch import Pieces, Scratch
from servetop.core.arrays import FloatArray
from servetop.core.merged.sample_columns import is_uniform

PAGE = 512
"""Number of entries of a column that are moved together."""


class PagedColumns:
    """Several columns of equal length, by name; NaN for unknown entries."""

    def __init__(self, names: Sequence[str], scratch: Scratch | None = None) -> None:
        scratch = Scratch() if scratch is None else scratch
        self._newest = {name: array("d") for name in names}
        self._pages = {name: Pieces(scratch) for name in names}
        self._sums = {name: array("d", [math.nan]) for name in names}
        """Sums before each page and, as the last one, before the newest entries; NaN without known entries."""
        self._uniform: dict[str, tuple[float, int]] = {}
        """The value and the number of entries of each column that has one value only, which has no other entries."""
        self._any = next(iter(names))
        self._evicted = 0
        """How many entries of each column are in the scratch store."""

    def __len__(self) -> int:
        uniform = self._uniform.get(self._any)
        return self._evicted + (len(self._newest[self._any]) if uniform is None else uniform[1])

    def extend(self, name: str, values: Iterable[float]) -> None:
        """Append entries to one column; all columns must have the same length before they are read."""
        self._spread(name)
        self._newest[name].extend(values)

    def extend_array(self, name: str, values: FloatArray) -> None:
        """Append the entries of an array to one column, as `extend`; as long as all are equal they take no memory."""
        if values.size and is_uniform(values):
            self.extend_equal(name, float(values[0]), values.size)
            return
        self._spread(name)
        self._newest[name].frombytes(np.ascontiguousarray(values, dtype=np.float64).tobytes())

    def extend_equal(self, name: str, value: float, count: int) -> None:
        """Append `count` equal entries to one column, which take no memory as long as all before are the same."""
        before, known = self._uniform.get(name, (value, 0))
        is_first = known or not (self._newest[name] or self._evicted)
        if is_first and (value == before or (math.isnan(value) and math.isnan(before))):
            self._uniform[name] = before, known + count
            return
        self._spread(name)
        self._newest[name].extend(array("d", [value]) * count)

    def _spread(self, name: str) -> None:
        """Store the entries of a column one by one."""
        if name in self._uniform:
            value, count = self._uniform.pop(name)
            self._newest[name].extend(array("d", [value]) * count)

    def evict(self) -> None:
        """Move entries to the scratch store, except the last one to two pages."""
        for name in list(self._uniform):
            self._spread(name)
        leaving = (len(self._newest[self._any]) // PAGE - 1) * PAGE
        for name, values in self._newest.items() if leaving > 0 else ():
            for first in range(0, leaving, PAGE):
                page = values[first : first + PAGE]
                self._sums[name].append(_added(self._sums[name][-1], np.array(page)))
                self._pages[name].append(page.tobytes())
            del values[:leaving]
        self._evicted += max(leaving, 0)

    def drop_first(self, count: int) -> None:
        """Drop the first entries permanently; sums still include them. Not valid after `evict` has moved entries."""
        for name, sums in self._sums.items():
            sums[-1] = self.total(name, stop=count)
        self._uniform = {name: (value, max(known - count, 0)) for name, (value, known) in self._uniform.items()}
        for values in self._newest.values():
            del values[:count]

    def column(self, name: str, *, start: int = 0, stop: int | None = None) -> FloatArray:
        """Return entries `start` to `stop`, excluding `stop`; shape (stop - start,)."""
        start, stop, _ = slice(start, stop).indices(len(self))
        if name in self._uniform:
            entries = np.empty(max(stop - start, 0))
            entries.fill(self._uniform[name][0])
            return entries
        evicted = self._evicted
        newest = np.array(self._newest[name][max(start - evicted, 0) : max(stop - evicted, 0)])
        if start >= evicted:
            return newest
        first, last = start // PAGE, -(-min(stop, evicted) // PAGE)
        pages = [np.frombuffer(self._pages[name][number]) for number in range(first, last)]
        moved = np.concatenate([np.empty(0), *pages])[start - first * PAGE : max(min(stop, evicted) - first * PAGE, 0)]
        return np.concatenate([moved, newest])

    def value(self, name: str, position: int) -> float:
        """Return the entry at a position."""
        if name in self._uniform:
            return self._uniform[name][0]
        if position >= self._evicted:
            return self._newest[name][position - self._evicted]
        return float(self.column(name, start=position, stop=position + 1)[0])

    def total(self, name: str, *, stop: int) -> float:
        """Return the sum of the known entries before `stop`, including dropped ones; NaN if none is known."""
        page = min(stop, self._evicted) // PAGE
        return _added(self._sums[name][page], self.column(name, start=page * PAGE, stop=stop))

    def last_known(self, name: str, *, stop: int) -> int | None:
        """Return the position of the last known entry before `stop`; None if there is none."""
        while stop > 0:
            start = (stop - 1) // PAGE * PAGE
            known = np.flatnonzero(~np.isnan(self.column(name, start=start, stop=stop)))
            if known.size:
                return start + int(known[-1])
            stop = start
        return None

    def up_to(self, name: str, value: float) -> int:
        """Return the number of entries of an ascending column that are at most `value`."""
        return bisect.bisect_right(range(len(self)), value, key=lambda position: self.value(name, position))


def _added(before: float, values: FloatArray) -> float:
    """Return a sum with some more values; NaN if none is known."""
    known = values[~np.isnan(values)]
    if not known.size:
        return before
    return float(known.sum()) + (0.0 if math.isnan(before) else before)
