"""The series of charts at one time of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from servetop.analysis.series.page_rates import page_rates
from servetop.analysis.series.smoothing import SMOOTHED_SECONDS, SmoothedRate, smoothed_rate
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.tick import TICK_SECONDS

LATENCIES = ("ttft", "tpot", "itl", "e2el")
"""Metrics whose percentiles are shown over time."""
CHARTED = {"ttft": "ttft_due"}
"""The histogram that is charted for a metric, if it is another: TTFT as the user felt it, from due."""
FELT_SHARE = 0.1
"""TTFT from due and from sent are shown apart if they differ by more than this fraction, ..."""
FELT_SECONDS, FELT_OF_OBJECTIVE = 0.02, 0.05
"""... and by more than these seconds, or this fraction of the objective if that is less."""
SHOWN = (*LATENCIES, *CHARTED.values())
"""All histograms whose percentiles are shown."""
COUNTED = {
    "offered": "due",
    "sent": "sent",
    "completed": "ok",
    "failed": "failed",
    "output_tokens": "output_tokens",
    "prompt_tokens": "prompt_tokens",
}
"""The tick column of each count that has both a rate and a total."""
SMOOTHED = ("offered", "sent", "completed", "output_tokens", "engine_output_tokens")
"""Counts with trailing rates."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StatsSeries:
    """Series for charts, with one value per time bin and NaN for gaps. All arrays have shape (bins,)."""

    times: FloatArray
    """End of each bin, in seconds since the run's origin."""
    offered: FloatArray
    sent: FloatArray
    completed: FloatArray
    in_flight: FloatArray
    queued: FloatArray
    output_tokens: FloatArray
    prompt_tokens: FloatArray
    engine_output_tokens: FloatArray
    kv_usage: FloatArray
    running: FloatArray
    waiting: FloatArray
    preemptions: FloatArray
    latencies: Mapping[str, FloatArray]
    """p50, p90 and p99 of each metric, and of `ttft_due`, over the sliding window; shape (3, bins)."""
    stages: IntArray
    """Index of the stage at the end of each bin; -1 before the load."""
    target: FloatArray = field(default_factory=lambda: np.empty(0))
    """Requests/s in force at the end of each bin, with ramps and steering; NaN without one, as in a closed loop."""
    target_concurrency: FloatArray = field(default_factory=lambda: np.empty(0))
    """The concurrency limit in force at the end of each bin."""
    smoothed: Mapping[str, SmoothedRate] = field(default_factory=dict)
    """Trailing rates of `SMOOTHED`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Bins:
    """The bins of the series, with the columns of their ticks."""

    history: TickHistory
    spans: Sequence[tuple[int, int]]
    width: int
    """Ticks per bin."""

    @cached_property
    def edges(self) -> IntArray:
        """The position of the first tick of each bin, and the one after the last tick; shape (bins + 1,)."""
        return np.array([low for low, _ in self.spans] + [high for _, high in self.spans[-1:]], dtype=np.int64)

    def values(self, column: str) -> FloatArray:
        """Return the values of a column in all bins."""
        first, last = (int(self.edges[0]), int(self.edges[-1])) if self.spans else (0, 0)
        return self.history.column(column, start=first, stop=last)

    def rate(self, column: str) -> FloatArray:
        """Sums per second."""
        if not self.spans:
            return np.empty(0)
        lows, highs = self.edges[:-1] - self.edges[0], self.edges[1:] - self.edges[0]
        sums = np.add.reduceat(np.append(self.values(column), 0.0), lows)
        return np.where(highs > lows, sums, 0.0) / (self.width * TICK_SECONDS)

    def engine_rate(self, column: str) -> FloatArray:
        """Return a rate of the engine's counter: of a watched server, between its pages of the bin and before."""
        return self.page_rate(column, seconds=0.0) if self.history.watched else self.rate(column)

    def page_rate(self, column: str, *, seconds: float) -> FloatArray:
        """Return the rate at the end of each bin between the pages of the bin, or of `seconds` if that is longer."""
        if not self.spans:
            return np.empty(0)
        first, last = int(self.edges[0]), int(self.edges[-1])
        window = max(seconds, self.width * TICK_SECONDS)
        rates = np.append(page_rates(self.history, column, start=first, stop=last, window=window), math.nan)
        return np.where(self.edges[1:] > self.edges[:-1], rates[self.edges[1:] - first - 1], math.nan)

    def smoothed(self, name: str) -> SmoothedRate:
        """Return a trailing rate; of a watched server's counter without the spread of each second, which is unknown."""
        if self.history.watched and name == "engine_output_tokens":
            rate = self.page_rate(name, seconds=SMOOTHED_SECONDS)
            return SmoothedRate(mean=rate, low=rate, high=rate, peak=rate)
        return smoothed_rate(self.history, COUNTED.get(name, name), bins=self.spans, width=self.width)

    def newest(self, column: str) -> FloatArray:
        """Return the last value in each bin."""
        if not self.spans:
            return np.empty(0)
        values = np.append(self.values(column), math.nan)
        return np.where(self.edges[1:] > self.edges[:-1], values[self.edges[1:] - self.edges[0] - 1], math.nan)

    def percentiles(self, metric: str, *, window: int) -> FloatArray:
        """p50, p90 and p99 over the `window` ticks before the end of each bin; shape (3, bins)."""
        rows = self.history.sliding_percentiles(metric, [(max(0, high - window), high) for _, high in self.spans])
        return np.array(rows, dtype=np.float64).reshape(-1, 3).T


def stats_series(
    history: TickHistory, at: float, *, window: float, span: float, columns: int, latencies: Sequence[str] = SHOWN
) -> StatsSeries:
    """Return the series over `span` seconds up to `at`, in at most `columns` bins."""
    width = max(1, math.ceil(span / TICK_SECONDS / max(columns, 1)))
    spans = history.bins(max(0.0, at - span), until=at, width=width)
    bins = _Bins(history=history, spans=spans, width=width)
    rate, newest = bins.rate, bins.newest
    low_index = math.ceil(max(0.0, at - span) / TICK_SECONDS / width - 1e-9)
    return StatsSeries(
        times=np.asarray((low_index + 1 + np.arange(len(spans))) * width * TICK_SECONDS, dtype=np.float64),
        offered=rate("due"),
        sent=rate("sent"),
        completed=rate("ok"),
        output_tokens=rate("output_tokens"),
        prompt_tokens=rate("prompt_tokens"),
        engine_output_tokens=bins.engine_rate("engine_output_tokens"),
        preemptions=bins.engine_rate("preemptions"),
        **{name: newest(name) for name in ("in_flight", "queued", "kv_usage", "running", "waiting")},
        latencies={metric: bins.percentiles(metric, window=round(window / TICK_SECONDS)) for metric in latencies},
        target=_target(newest("request_rate"), newest("paused")),
        target_concurrency=newest("max_concurrency"),
        smoothed={name: bins.smoothed(name) for name in SMOOTHED},
        stages=_stages(history, spans),
    )


@cache
def no_series() -> StatsSeries:
    """Return series without bins or latencies."""
    return stats_series(TickHistory(), 0.0, window=1.0, span=1.0, columns=1, latencies=())


def _target(rate: FloatArray, paused: FloatArray) -> FloatArray:
    """Return the rate in force: 0 while paused, NaN where it is infinite."""
    return np.where(np.isfinite(rate), np.where(paused > 0, 0.0, rate), np.nan)


def _stages(history: TickHistory, spans: Sequence[tuple[int, int]]) -> IntArray:
    """Return the stage of the last tick before the end of each bin; -1 before the first tick."""
    if not spans:
        return np.empty(0, dtype=np.int64)
    ends = np.array([high for _, high in spans], dtype=np.int64)
    first = max(int(ends[0]) - 1, 0)
    known = history.column("stage", start=first, stop=int(ends[-1]))
    if not known.size:
        return np.full(ends.size, -1, dtype=np.int64)
    return np.where(ends > 0, known[np.maximum(ends - 1 - first, 0)], -1).astype(np.int64)
