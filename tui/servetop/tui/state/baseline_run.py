"""The run that another one is compared with on the screen: read once, reduced to what charts and tables need."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.cells.attempts import StageHistory
from servetop.analysis.series.stats_series import SHOWN
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.steady_state import SteadyWindow
from servetop.core.arrays import FloatArray
from servetop.core.events import Command, Note, RunEnd, StageChange
from servetop.core.interfaces.run_source import RunHeader, RunSource, RunUpdate
from servetop.core.tick import TICK_SECONDS, whole_ticks
from servetop.tui.drawing.heat_map import BinnedHistograms
from servetop.tui.state.scratch_file import ScratchFile
from servetop.tui.state.stage_metrics import StageMetrics, stage_metrics
from servetop.tui.state.steady_stages import SteadyStages

COUNTS = ("ok", "output_tokens", "prompt_tokens", "preemptions")
"""Tick columns whose rates are shown."""
GAUGES = ("in_flight", "running", "waiting", "kv_usage")
"""Tick columns whose newest values are shown."""
WINDOW = 10.0
"""Seconds of the sliding window of percentiles and rates, as of the run on the screen."""
_MOST_TICKS = 4_000
"""Ticks per read."""
_KEPT_TICKS = 14_400
"""Newest ticks in memory while a baseline is read: an hour."""
_LATENCY_POINTS = 3_600
"""Times for which percentiles are computed, at most."""
_AT_ONCE = 400
"""Windows of percentiles that are computed at once, so that the thread that draws is not held up."""
_OUTDATED = round(3.0 / TICK_SECONDS)
"""Ticks after which a gauge without a new sample is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaselineRun:
    """A whole run: counts and gauges by tick, percentiles over time, and the results of its stages."""

    name: str
    header: RunHeader
    stages: tuple[StageChange, ...]
    end: RunEnd | None
    live: bool
    """It was still running when it was read."""
    edge: float
    """The end of what was read, seconds."""
    tick_ends: FloatArray
    sums: Mapping[str, FloatArray]
    """Each column of `COUNTS`, summed from the start to the end of each tick; NaN if it is not exported."""
    gauges: Mapping[str, FloatArray]
    """Each column of `GAUGES`."""
    latency_times: FloatArray
    latencies: Mapping[str, FloatArray]
    """p50, p90 and p99 of each metric of `SHOWN` over the window before each of `latency_times`."""
    per_stage: Callable[[], Sequence[StageMetrics]]
    """Returns the results of the stages with a load."""
    steady: Mapping[int, SteadyWindow]

    def rate(self, name: str, times: FloatArray, *, seconds: float) -> FloatArray:
        """Means per second over the time before each of `times`, which may be NaN."""
        if not self.tick_ends.size:
            return np.full(times.shape, np.nan)
        edges, sums = np.append(self.tick_ends[0] - TICK_SECONDS, self.tick_ends), np.append(0.0, self.sums[name])
        rates: FloatArray = (np.interp(times, edges, sums) - np.interp(times - seconds, edges, sums)) / seconds
        return rates

    def rate_at(self, name: str, at: float) -> float:
        """Return the mean per second over the whole ticks of WINDOW before a time, which may be NaN."""
        end = whole_ticks(at) if math.isfinite(at) else math.nan
        start, stop = np.searchsorted(self.tick_ends, [end - WINDOW + TICK_SECONDS / 2, end + TICK_SECONDS / 2])
        if math.isnan(end) or stop <= start:
            return math.nan
        before = float(self.sums[name][start - 1]) if start else 0.0
        return (float(self.sums[name][stop - 1]) - before) / (int(stop - start) * TICK_SECONDS)

    def newest(self, name: str, times: FloatArray) -> FloatArray:
        """Return the last value of a gauge at each of `times`."""
        return _last_before(self.tick_ends, self.gauges[name], times)

    def percentiles(self, metric: str, times: FloatArray) -> FloatArray:
        """p50, p90 and p99 at each of `times`; shape (3, times)."""
        return np.array([_last_before(self.latency_times, row, times) for row in self.latencies[metric]])


def _last_before(known_at: FloatArray, values: FloatArray, times: FloatArray) -> FloatArray:
    """Return the value of the last of the ascending times `known_at` up to each of `times`; NaN before the first."""
    if not known_at.size:
        return np.full(times.shape, np.nan)
    positions = np.searchsorted(known_at, times + 1e-9, side="right") - 1
    return np.where((positions >= 0) & ~np.isnan(times), values[np.maximum(positions, 0)], np.nan)


class BaselineReader:
    """Reads a run as far as it is recorded; call it again to read on while it grows. It may run in a thread."""

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._history = TickHistory(read=source.past_ticks, scratch=ScratchFile())
        self._binned = BinnedHistograms(self._history)
        self._steady = SteadyStages(self._history)
        self._stages: list[StageChange] = []
        self._notes: list[Note] = []
        self._commands: list[Command] = []
        self._end: RunEnd | None = None

    def read(self) -> BaselineRun:
        """Return the run up to now."""
        update = RunUpdate(more=True)
        while update.more:
            update = self._source.poll(most_ticks=_MOST_TICKS)
            self._history.extend(update.ticks)
            self._history.evict(keep=_KEPT_TICKS)
            self._stages += update.stages
            self._notes += update.notes
            self._commands += update.commands
            self._end = update.end or self._end
        history, header = self._history, self._source.header
        ends = (np.array(history.ticks.indexes, dtype=np.float64) + 1) * TICK_SECONDS
        edge = max([*ends[-1:], *([self._end.at] if self._end else [])], default=0.0)
        times, latencies = _latencies(history, edge)
        results = stage_metrics(history, self._binned, self._rows(header), edge, over=self._end is not None)
        return BaselineRun(
            name=self._source.name,
            header=header,
            stages=tuple(self._stages),
            end=self._end,
            live=self._source.is_live(),
            edge=edge,
            tick_ends=ends,
            sums={name: _summed(history.column(name)) for name in COUNTS},
            gauges={name: _held(history.column(name)) for name in GAUGES},
            latency_times=times,
            latencies=latencies,
            per_stage=lambda: results,
            steady=self._steady.windows(
                self._stages, end=self._end.at if self._end else None, cooldown=header.config.cooldown
            ),
        )

    def _rows(self, header: RunHeader) -> StageHistory:
        return StageHistory(
            stages=self._stages,
            tallies={},
            notes=self._notes,
            commands=self._commands,
            end=self._end,
            max_failures=header.config.max_failures,
        )


def _summed(counts: FloatArray) -> FloatArray:
    return np.full(counts.shape, np.nan) if np.isnan(counts).all() else np.cumsum(np.nan_to_num(counts))


def _held(values: FloatArray) -> FloatArray:
    """A gauge keeps its value until the next sample, for at most a few seconds."""
    ticks = np.arange(values.size)
    sampled = np.maximum.accumulate(np.where(np.isnan(values), -1, ticks))
    return np.where((sampled >= 0) & (ticks - sampled <= _OUTDATED), values[np.maximum(sampled, 0)], np.nan)


def _latencies(history: TickHistory, edge: float) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Times, and the percentiles of the window before each of them by metric."""
    width = max(1, -(-len(history) // _LATENCY_POINTS))
    stops = [stop for _, stop in history.bins(0.0, until=edge, width=width)]
    window = round(WINDOW / TICK_SECONDS)
    windows = [(max(0, stop - window), stop) for stop in stops]
    found: dict[str, FloatArray] = {}
    for metric in SHOWN:
        rows: list[tuple[float, float, float]] = []
        for first in range(0, len(windows), _AT_ONCE):
            rows += history.sliding_percentiles(metric, windows[first : first + _AT_ONCE])
        found[metric] = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return np.asarray((np.arange(len(stops)) + 1) * width * TICK_SECONDS, dtype=np.float64), found
