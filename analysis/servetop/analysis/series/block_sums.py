"""Sums of histograms over 1, 16, 256, … blocks of ticks, so that any period is the sum of a few of them."""

from __future__ import annotations

import numpy as np

from servetop.analysis.series.scratch import Pieces, Scratch
from servetop.core.histogram import LogHistogram

FANOUT = 16
"""Number of sums that are added to one of the next level."""
_TOTAL = np.dtype("<f8")
_NARROW = np.dtype([("bucket", "<u2"), ("count", "<u4")])
_WIDE = np.dtype([("bucket", "<u2"), ("count", "<i8")])
_KINDS = {b"n": _NARROW, b"w": _WIDE}


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
    widest = int(histogram.counts.max(initial=0))
    kind = b"n" if widest <= np.iinfo(np.uint32).max else b"w"
    records = np.empty(histogram.buckets.size, _KINDS[kind])
    records["bucket"], records["count"] = histogram.buckets, histogram.counts
    return kind + np.array(histogram.total, _TOTAL).tobytes() + records.tobytes()


def _unpacked(piece: bytes) -> LogHistogram:
    records = np.frombuffer(piece, _KINDS[piece[:1]], offset=1 + _TOTAL.itemsize)
    total = float(np.frombuffer(piece, _TOTAL, count=1, offset=1)[0])
    return LogHistogram(records["bucket"], records["count"], total)
