"""What charts over long times need of ticks that are no longer in memory: sums of blocks, and sliding percentiles."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping

import numpy as np

from servetop.core.histogram import LogHistogram
from servetop.core.kept_ticks import BLOCK
from servetop.core.tick import Tick

SUMMED = ("ttft", "itl", "tpot", "e2el", "ttfot", "input_len", "output_len")
"""Histograms that are shown over a stage or a long chart."""
SLIDING = ("ttft", "itl", "e2el")
"""Histograms whose percentiles are charted over time."""
WINDOW = 40
"""Ticks (ten seconds) that charted percentiles cover."""
_UNKNOWN = -1.0

Percentiles = tuple[float, float, float]


class OldFigures:
    """Of ticks from the run's beginning on, block by block."""

    def __init__(self) -> None:
        self._sums: dict[str, list[LogHistogram]] = {name: [] for name in SUMMED}
        self._sliding = {name: array("d") for name in SLIDING}

    def add(self, ticks: list[Tick]) -> None:
        """Take in the next block."""
        for name, sums in self._sums.items():
            sums.append(_narrow(LogHistogram.merged(getattr(tick.client, name) for tick in ticks)))
        covered = len(self._sums[SUMMED[0]]) * BLOCK + WINDOW  # windows that reach back into these blocks
        for values in self._sliding.values():
            values.extend([_UNKNOWN] * (3 * covered - len(values)))

    def histogram(self, name: str, start: int, stop: int, ticks: Callable[[int, int], list[Tick]]) -> LogHistogram:
        """The sum over ticks `start` to `stop`; `ticks` gives those at the ends, which are no whole block."""
        sums = self._sums.get(name, [])
        first, last = -(-start // BLOCK), min(stop // BLOCK, len(sums))
        if first >= last:
            return LogHistogram.merged(getattr(tick.client, name) for tick in ticks(start, stop))
        ends = [*ticks(start, first * BLOCK), *ticks(last * BLOCK, stop)]
        return LogHistogram.merged([*sums[first:last], *(getattr(tick.client, name) for tick in ends)])

    def is_charted(self, name: str, start: int, stop: int) -> bool:
        """Whether ticks `start` to `stop` are a sliding window that reaches back into these blocks."""
        charted = self._sliding.get(name)
        return charted is not None and 0 < 3 * stop <= len(charted) and start == max(stop - WINDOW, 0)

    def knows(self, stop: int) -> bool:
        """Percentiles of the sliding window before tick `stop` were remembered."""
        return self._sliding[SLIDING[0]][3 * stop - 3] != _UNKNOWN

    def remember(self, stop: int, found: Mapping[str, Percentiles]) -> None:
        """Keep the percentiles of the sliding window before tick `stop`, of each histogram in `SLIDING`."""
        for name, values in self._sliding.items():
            values[3 * stop - 3 : 3 * stop] = array("d", found[name])

    def percentiles(self, name: str, stop: int) -> Percentiles:
        """p50, p90 and p99 in seconds of the sliding window before tick `stop`."""
        low, middle, high = self._sliding[name][3 * stop - 3 : 3 * stop]
        return low, middle, high


def _narrow(histogram: LogHistogram) -> LogHistogram:
    """A copy in little memory, which holds on to nothing."""
    widest = np.iinfo(np.uint32).max
    counts = histogram.counts.astype(np.uint32 if histogram.counts.max(initial=0) <= widest else np.int64)
    return LogHistogram(histogram.buckets.astype(np.uint16), counts, histogram.total)  # type: ignore[arg-type]
