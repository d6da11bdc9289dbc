"""What charts over long times need of ticks that are no longer in memory: sums of blocks, and sliding percentiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from servetop.analysis.series.block_sums import BlockSums
from servetop.analysis.series.scratch import Pieces, Scratch
from servetop.analysis.series.tick_cache import BLOCK
from servetop.core.histogram import LogHistogram
from servetop.core.tick import Tick

SUMMED = ("ttft", "itl", "tpot", "e2el", "ttfot", "input_len", "output_len")
"""Histograms that are shown over a stage or a long chart."""
SLIDING = ("ttft", "itl", "e2el")
"""Histograms whose percentiles are charted over time."""
WINDOW = 40
"""Ticks (ten seconds) that charted percentiles cover."""

Percentiles = tuple[float, float, float]


class WindowCache:
    """Of ticks from the run's beginning on, block by block; they lie in a scratch."""

    def __init__(self, scratch: Scratch) -> None:
        self._sums = {name: BlockSums(scratch) for name in SUMMED}
        self._sliding = Pieces(scratch)
        """Percentiles of the windows that begin in each block; empty where they were not worked out."""

    def add(self, ticks: Sequence[Tick], sliding: Sequence[Mapping[str, Percentiles]] = ()) -> None:
        """Take in the next block, and the percentiles of the windows that begin in it, each `WINDOW` ticks long."""
        for name, sums in self._sums.items():
            sums.append(LogHistogram.merged(getattr(tick.client, name) for tick in ticks))
        self._sliding.append(np.array([[each[name] for name in SLIDING] for each in sliding]).tobytes())

    def histogram(self, name: str, start: int, stop: int, ticks: Callable[[int, int], list[Tick]]) -> LogHistogram:
        """The sum over ticks `start` to `stop`; `ticks` gives those at the ends, which are no whole block."""
        sums = self._sums.get(name)
        first, last = -(-start // BLOCK), min(stop // BLOCK, len(sums or ()))
        if sums is None or first >= last:
            return LogHistogram.merged(getattr(tick.client, name) for tick in ticks(start, stop))
        ends = [*ticks(start, first * BLOCK), *ticks(last * BLOCK, stop)]
        return LogHistogram.merged([*sums.between(first, last), *(getattr(tick.client, name) for tick in ends)])

    def percentiles(self, name: str, start: int, stop: int) -> Percentiles | None:
        """p50, p90 and p99 in seconds over ticks `start` to `stop`, where they are a window whose figures were kept."""
        number = start // BLOCK
        if name not in SLIDING or stop - start != WINDOW or number >= len(self._sliding) or not self._sliding[number]:
            return None
        low, middle, high = np.frombuffer(self._sliding[number]).reshape(BLOCK, -1, 3)[
            start % BLOCK, SLIDING.index(name)
        ]
        return float(low), float(middle), float(high)
