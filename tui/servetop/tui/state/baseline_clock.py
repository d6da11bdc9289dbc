"""Puts the baseline on the clock of the run on the screen, for one frame after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.live_stats import Percentiles
from servetop.analysis.manifest.manifest_diff import ManifestDifference, manifest_differences
from servetop.analysis.series.smoothing import SMOOTHED_SECONDS
from servetop.analysis.series.stage_clock import StageClock, stage_clock, stage_spans
from servetop.analysis.series.stats_series import SHOWN
from servetop.core.arrays import FloatArray
from servetop.core.events import RunEnd, StageChange
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import TICK_SECONDS
from servetop.tui.state.baseline import Baseline, distinct_names
from servetop.tui.state.baseline_run import COUNTS, GAUGES, BaselineRun
from servetop.tui.state.frame import Frame


class BaselineClock:
    """Aligns a baseline with a run; the alignment is computed once for each list of stages."""

    def __init__(self, baseline: BaselineRun) -> None:
        self.baseline = baseline
        self._spans = stage_spans(baseline.stages, end=baseline.edge)
        self._aligned: tuple[object, StageClock] = (None, StageClock())
        self._changes: tuple[RunHeader | None, tuple[ManifestDifference, ...]] = (None, ())

    def names(self, header: RunHeader, file: str) -> tuple[str, str]:
        """Return the names of a run, recorded in `file`, and of the baseline."""
        baseline = self.baseline
        return distinct_names((header.config.label, file), (baseline.header.config.label, baseline.name))

    def at(self, frame: Frame, stages: Sequence[StageChange], end: RunEnd | None, *, columns: int) -> Baseline:
        """Return the baseline as of a frame of the run that has these stages and this end, in at most `columns` bins.

        At the end of both runs its values are those at its own end.
        """
        alignment = self._alignment(frame.header, stages, None if end is None else end.at)
        if self._changes[0] is not frame.header:
            self._changes = (frame.header, manifest_differences(self.baseline.header, frame.header))
        times = bin_ends(frame.window[1], span=frame.axis.span, columns=columns)
        shown = frame.view.playhead.at if frame.cursor is None else frame.cursor
        at_both_ends = frame.end is not None and frame.cursor is None and self.baseline.end is not None
        now = self.baseline.edge if at_both_ends else alignment.baseline_time(shown)
        step = float(times[1] - times[0]) if times.size > 1 else TICK_SECONDS
        then = alignment.baseline_times(times)
        shown_at = _as_of(self.baseline, times, then, now=now, smoothed=max(step, SMOOTHED_SECONDS))
        return replace(shown_at, names=self.names(frame.header, frame.run_name), changes=self._changes[1])

    def _alignment(self, header: RunHeader, stages: Sequence[StageChange], end: float | None) -> StageClock:
        key = (len(stages), stages[-1] if stages else None, end)
        if self._aligned[0] != key:
            same_plan = len(header.config.stages) == len(self.baseline.header.config.stages)
            self._aligned = (key, stage_clock(stage_spans(stages, end=end), self._spans, same_plan=same_plan))
        return self._aligned[1]


def _as_of(run: BaselineRun, times: FloatArray, then: FloatArray, *, now: float, smoothed: float) -> Baseline:
    """Return the baseline at its own times `then`, which are drawn at `times`, and at `now`, its time of the values."""
    at = np.array([now])
    return Baseline(
        run=run,
        times=times,
        rates={name: run.rate(name, then, seconds=smoothed) for name in COUNTS},
        gauges={name: run.newest(name, then) for name in GAUGES},
        latencies={name: run.percentiles(name, then) for name in SHOWN},
        rates_now={name: run.rate_at(name, now) for name in COUNTS},
        gauges_now={name: float(run.newest(name, at)[0]) for name in GAUGES},
        latencies_now={name: _percentiles(run.percentiles(name, at)) for name in SHOWN},
    )


def bin_ends(until: float, *, span: float, columns: int) -> FloatArray:
    """Return the ends of the bins of a time axis, on the same grid as those of `stats_series`, up to its right edge."""
    width = max(1, math.ceil(span / TICK_SECONDS / columns)) * TICK_SECONDS
    first, last = math.ceil(max(until - span, 0.0) / width - 1e-9), math.floor(until / width + 1e-9)
    return np.asarray(np.arange(first + 1, last + 1) * width, dtype=np.float64)


def _percentiles(rows: FloatArray) -> Percentiles:
    """Return the percentiles at a single time, from an array of shape (3, 1)."""
    p50, p90, p99 = rows[:, 0].tolist()
    return Percentiles(p50=p50, p90=p90, p99=p99)
