"""Heat maps: request counts by time and latency, as shaded cells on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.histogram import LogHistogram, bucket_value
from servetop.core.tick import TICK_SECONDS
from servetop.tui.drawing.scale import log_limits
from servetop.tui.drawing.text_runs import Run, merged

SHADES = (("·", "cool"), ("░", "cool"), ("▒", "warm"), ("▓", "hot"), ("█", "hot"))
"""From few to many, distinguishable without colour; few styles, because each change of style costs output bytes."""
_MOST_BINS = 250
"""Bins in the cache: enough for two charts."""
_MOST_STAGES = 4_000
"""Entries in the cache of stages: stages times metrics."""


class BinnedHistograms:
    """Histograms of a latency by time bin, as in `live_stats.Series`, and by stage; each is merged once."""

    def __init__(self, history: TickHistory) -> None:
        self._history = history
        self._bins: dict[tuple[str, int, int], LogHistogram] = {}
        self._stages: dict[tuple[str, int, int], LogHistogram] = {}

    def over(self, metric: str, *, at: float, span: float, columns: int) -> list[LogHistogram]:
        """Return one histogram for each bin of the `span` seconds before `at`, oldest first."""
        width = max(1, math.ceil(span / TICK_SECONDS / max(columns, 1)))
        bins = self._history.bins(max(0.0, at - span), until=at, width=width)
        return [self._merged(self._bins, _MOST_BINS, (metric, start, stop)) for start, stop in bins]

    def between(self, metric: str, *, start: int, stop: int) -> LogHistogram:
        """Return the histogram over ticks `start` to `stop` of a finished stage."""
        return self._merged(self._stages, _MOST_STAGES, (metric, start, stop))

    def _merged(
        self, kept: dict[tuple[str, int, int], LogHistogram], most: int, key: tuple[str, int, int]
    ) -> LogHistogram:
        if key not in kept:
            if len(kept) >= most:
                del kept[next(iter(kept))]  # the oldest: in a live run the leftmost one
            metric, start, stop = key
            kept[key] = self._history.histogram(metric, start=start, stop=stop)
        return kept[key]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeatMap:
    """Counts by cell, with the latencies at the edges."""

    counts: FloatArray
    """Requests (for ITL: tokens) per time bin; shape (rows, columns), the first row is the slowest."""
    low: float
    """Seconds at the bottom edge."""
    high: float
    """Seconds at the top edge."""

    def latency(self, row: int) -> float:
        """Return the seconds in the middle of a row."""
        rows = self.counts.shape[0]
        return float(self.low * (self.high / self.low) ** ((rows - row - 0.5) / rows))

    def cells(self) -> list[list[Run]]:
        """Return the rows of shades by the logarithm of the count; the darkest is the maximum."""
        peak = float(self.counts.max(initial=0.0))
        scaled = np.log1p(self.counts) / math.log1p(peak) if peak > 0 else self.counts
        levels = np.ceil(scaled * len(SHADES) - 1e-9).astype(int)
        return [merged([SHADES[level - 1] if level else (" ", "") for level in row]) for row in levels]


def heat_map(
    bins: Sequence[LogHistogram], times: FloatArray, *, window: tuple[float, float], shape: tuple[int, int]
) -> HeatMap | None:
    """A map of `shape` (rows, columns) over `window` seconds; None without values. `times` are the ends of the bins."""
    rows, columns = shape
    seen = [each for each in bins if each.buckets.size]
    if not seen or rows < 1 or columns < 1:
        return None
    low, high = log_limits(
        bucket_value(min(int(each.buckets[0]) for each in seen)),
        bucket_value(max(int(each.buckets[-1]) for each in seen)),
    )
    until = np.concatenate((np.zeros((1, rows)), np.cumsum(_ranked(bins, rows, low=low, high=high), axis=0)))
    step = float(
        times[0] if len(bins) < 2 else np.diff(times).min()
    )  # a single bin is the first of the run: it starts at 0
    edges = np.linspace(*window, columns + 1)
    first = np.clip(np.floor((edges[:-1] - times[0]) / step + 1 + 1e-9), 0, len(bins)).astype(int)
    last = np.clip(np.maximum(np.floor((edges[1:] - times[0]) / step + 1 + 1e-9), first + 1), 0, len(bins)).astype(int)
    inside = edges[1:] > times[0] - step + 1e-9
    means = (until[last] - until[first]) / np.maximum(last - first, 1)[:, None]
    return HeatMap(counts=np.where(inside[:, None], means, 0.0).T[::-1], low=low, high=high)


def _ranked(bins: Sequence[LogHistogram], rows: int, *, low: float, high: float) -> FloatArray:
    """Counts by bin and row, the first row from `low` seconds; shape (bins, rows)."""
    numbers = np.repeat(np.arange(len(bins)), [each.buckets.size for each in bins])
    buckets, counts = np.concatenate([each.buckets for each in bins]), np.concatenate([each.counts for each in bins])
    above = math.log(bucket_value(0) / low) + buckets * math.log(bucket_value(1) / bucket_value(0))
    rank = np.clip((above * (rows / math.log(high / low))).astype(int), 0, rows - 1)
    dense = np.bincount(numbers * rows + rank, weights=counts, minlength=len(bins) * rows)
    return np.asarray(dense.reshape(len(bins), rows), dtype=np.float64)
