"""Cached sums and sliding percentiles of evicted ticks, for charts over long periods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from servetop.analysis.series.scratch import Pieces, Scratch
from servetop.analysis.series.sliding_percentiles import Percentiles, neighbouring_percentiles
from servetop.analysis.series.tick_cache import BLOCK
from servetop.core.histogram import LogHistogram
from servetop.core.tick import Tick

SUMMED = ("ttft", "ttft_due", "itl", "tpot", "e2el", "ttfot", "input_len", "output_len")
"""Histograms that are summed over a stage or a long chart."""
SLIDING = ("ttft", "ttft_due", "tpot", "itl", "e2el")
"""Histograms whose percentiles are charted over time."""
WINDOW = 40
"""Window of charted percentiles in ticks (ten seconds)."""


class WindowCache:
    """Block sums and percentiles of the ticks from the run's start on, in a scratch store."""

    def __init__(self, scratch: Scratch) -> None:
        self._sums = {name: BlockSums(scratch) for name in SUMMED}
        self._sliding = Pieces(scratch)
        """The percentiles of the windows that start in each block; empty if not computed."""

    def add(self, ticks: Sequence[Tick], sliding: Sequence[Mapping[str, Percentiles]] = ()) -> None:
        """Append the next block and the percentiles of the windows of `WINDOW` ticks that start in it."""
        for name, sums in self._sums.items():
            sums.append(LogHistogram.merged(getattr(tick.client, name) for tick in ticks))
        self._sliding.append(np.array([[each[name] for name in SLIDING] for each in sliding]).tobytes())

    def histogram(self, name: str, start: int, stop: int, ticks: Callable[[int, int], list[Tick]]) -> LogHistogram:
        """Return the sum over ticks `start` to `stop`; `ticks` returns those at the ends outside whole blocks."""
        sums = self._sums.get(name)
        first, last = -(-start // BLOCK), min(stop // BLOCK, len(sums or ()))
        if sums is None or first >= last:
            return LogHistogram.merged(getattr(tick.client, name) for tick in ticks(start, stop))
        ends = [*ticks(start, first * BLOCK), *ticks(last * BLOCK, stop)]
        return LogHistogram.merged([*sums.between(first, last), *(getattr(tick.client, name) for tick in ends)])

    def percentiles(self, name: str, start: int, stop: int) -> Percentiles | None:
        """Return p50, p90 and p99 in seconds over ticks `start` to `stop`; None if that window is not cached."""
        number = start // BLOCK
        if name not in SLIDING or stop - start != WINDOW or number >= len(self._sliding) or not self._sliding[number]:
            return None
        low, middle, high = np.frombuffer(self._sliding[number]).reshape(BLOCK, -1, 3)[
            start % BLOCK, SLIDING.index(name)
        ]
        return float(low), float(middle), float(high)


def charted_percentiles(
    first: int, histograms: Callable[[str, int, int], Sequence[LogHistogram]]
) -> list[dict[str, Percentiles]]:
    """Return the charted percentiles of the windows that start in a block, from the position of its first tick.

    `histograms` returns those of a name between two positions.
    """
    windows = [(each, each + WINDOW) for each in range(first, first + BLOCK)]
    by_name = [neighbouring_percentiles(windows, partial(histograms, name)) for name in SLIDING]
    return [dict(zip(SLIDING, each, strict=True)) for each in zip(*by_name, strict=True)]


FANOUT = 16
"""Number of sums that are added to one of the next level."""
_TOTAL = np.dtype("<f8")
_NARROW = np.dtype([("bucket", "<u2"), ("count", "<u4")])
_WIDE = np.dtype([("bucket", "<u2"), ("count", "<i8")])
_KINDS = {b"n": _NARROW, b"w": _WIDE}
_EMPTY = b"n" + np.array(0.0, _TOTAL).tobytes()


class BlockSums:
    """The block sums of one histogram, in a scratch store."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._levels = [Pieces(scratch)]

    def __len__(self) -> int:
        return len(self._levels[0])

    def append(self, block: LogHistogram) -> None:
        """Add the sum of the next block."""
        for level in range(len(self._levels) + 1):
            if level == len(self._levels):
                self._levels.append(Pieces(self._scratch))
            sums = self._levels[level]
            sums.append(_packed(block))
            if len(sums) % FANOUT:
                return
            block = LogHistogram.merged(_unpacked(sums[number]) for number in range(len(sums) - FANOUT, len(sums)))

    def between(self, first: int, last: int) -> list[LogHistogram]:
        """Return the fewest sums that together cover blocks `first` to `last`, excluding `last`."""
        sums = []
        while first < last:
            level = size = 0
            while first % FANOUT ** (level + 1) == 0 and first + FANOUT ** (level + 1) <= last:
                level += 1
            size = FANOUT**level
            sums.append(_unpacked(self._levels[level][first // size]))
            first += size
        return sums


def _packed(histogram: LogHistogram) -> bytes:
    if not histogram.buckets.size:
        return _EMPTY
    widest = int(histogram.counts.max(initial=0))
    kind = b"n" if widest <= np.iinfo(np.uint32).max else b"w"
    records = np.empty(histogram.buckets.size, _KINDS[kind])
    records["bucket"], records["count"] = histogram.buckets, histogram.counts
    return kind + np.array(histogram.total, _TOTAL).tobytes() + records.tobytes()


def _unpacked(piece: bytes) -> LogHistogram:
    records = np.frombuffer(piece, _KINDS[piece[:1]], offset=1 + _TOTAL.itemsize)
    total = float(np.frombuffer(piece, _TOTAL, count=1, offset=1)[0])
    return LogHistogram(records["bucket"], records["count"], total)
