"""The queue panel: running and waiting requests of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.live_stats import LiveStats
from servetop.core.arrays import FloatArray
from servetop.core.text import formats
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, Bars, chart
from servetop.tui.drawing.scale import peak_of
from servetop.tui.drawing.text_runs import Run, TextRow, joined, placard, shortened
from servetop.tui.panels.baseline_parts import bars_or_lines, delta
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.availability import why_missing, why_outdated
from servetop.tui.state.baseline import Baseline
from servetop.tui.state.engine_peaks import EnginePeaks
from servetop.tui.state.frame import Frame

ROOM_FOR_REPLICAS = 14
"""Rows from which the table of replicas is shown below the chart."""
_WIDE = 30
"""Cells from which the title has room for both numbers; in fewer they are above the bars if there are two rows."""
_WIDEST = 44
"""Cells from which it also has room for the difference from a baseline."""
_NARROW = 22
"""Cells from which they have their swatches there."""


class QueuePanel(TimeChart):
    """Running and waiting requests, stacked."""

    axes_from = 5

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if why_missing(frame, "running", "waiting"):
            return [[("Queue", "title")]]
        peak: list[Run] = [(" peak", "")] if frame.peaks else []
        narrow = self.size.width < _WIDE
        if narrow and self.size.height != 1:
            return [[("Queue", "title"), *peak]]
        if lost := _why_unknown(frame):
            return [[(lost, "warn")] if narrow else [("Queue ", "title"), (lost, "warn")]]
        values = _values(frame.stats, frame.peaks)
        first, *others = [value[1:] for value in reversed(values)] if narrow else values
        title: TextRow = [("Queue", "title"), *peak, ("" if narrow else " ", ""), *first]
        return [[*title, *self._change(frame)], *others]

    def _change(self, frame: Frame) -> TextRow:
        """Return the difference of the running requests from the baseline's, if there is room; not of peaks."""
        baseline, sample = frame.shown_baseline, frame.stats.engine
        if baseline is None or sample is None or frame.peaks or self.size.width < _WIDEST:
            return []
        return [(" ", ""), *delta(sample.running, baseline.gauges_now["running"])]

    def peak(self, frame: Frame) -> float:
        series, baseline = frame.stats.series, frame.shown_baseline
        return peak_of(series.running + np.nan_to_num(series.waiting), *([_before(baseline)] if baseline else []))

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        missing = why_missing(frame, "running", "waiting")
        if missing:
            return placard(missing, width=width, height=height)
        shown = height >= ROOM_FOR_REPLICAS and not frame.watches_several
        replicas = frame.replicas(width) if shown else ()
        room = max(height - len(replicas), self.axes_from) if replicas else height
        chart_rows = draw_queue(
            frame.stats,
            self.axes(frame),
            (width, room),
            lost=_why_unknown(frame),
            peaks=frame.peaks,
            baseline=frame.shown_baseline,
        )
        return [*chart_rows, *replicas][:height]

    def axes(self, frame: Frame) -> Axes:
        return replace(super().axes(frame), smallest_step=1.0)


def _why_unknown(frame: Frame) -> str:
    """Return why there is no count of now, or no peak of a finished run."""
    return frame.peaks.reason if frame.peaks else why_outdated(frame)


def draw_queue(
    stats: LiveStats,
    axes: Axes,
    size: tuple[int, int],
    *,
    lost: str = "",
    peaks: EnginePeaks | None = None,
    baseline: Baseline | None = None,
) -> list[TextRow]:
    """Running requests below, waiting ones on top of them (hatched); in few rows both as bars.

    Narrow panels have the values above (the `peaks` of a finished run), or the reason why they are `lost`.
    """
    width, height = size
    above = [_above(_values(stats, peaks), width, lost)] if width < _WIDE and height > 1 else []
    waits, runs = _areas(stats)
    before = None if baseline is None else _before(baseline)
    if height >= QueuePanel.axes_from:
        lines = [] if baseline is None or before is None else baseline.lines(before, over_area=True)
        return [*above, *chart((waits, runs, *lines), axes, width=width, height=height - len(above))]
    bars = Bars(
        times=waits.times,
        values=waits.values,
        style=runs.style,
        alert=waits.values > runs.values,
        alert_style=waits.style,
    )
    rows = max(height - len(above), 1)
    return [*above, *bars_or_lines(bars, axes, before, baseline=baseline, width=width, height=rows)]


def _before(baseline: Baseline) -> FloatArray:
    """Return the baseline's running and waiting requests together."""
    return baseline.gauges["running"] + np.nan_to_num(baseline.gauges["waiting"])


def _above(values: Sequence[TextRow], width: int, lost: str) -> TextRow:
    if lost:
        return [(shortened(lost, width), "warn")]
    narrow = width < _NARROW
    parts = [part[1:] for part in values] if narrow else values
    return joined(parts, width=width, gap="" if narrow else "  ")


def _areas(stats: LiveStats) -> tuple[ChartLine, ChartLine]:
    """Running and waiting requests together, and the running ones alone."""
    series = stats.series
    both = series.running + np.nan_to_num(series.waiting)
    waits = ChartLine(times=series.times, values=both, style="orange", dash="dashed", area=True)
    return waits, ChartLine(times=series.times, values=series.running, style="sky", area=True)


def _values(stats: LiveStats, peaks: EnginePeaks | None) -> list[TextRow]:
    """Running and waiting requests of the newest sample, or at most, each after the first cell of its swatch."""
    waits, runs = (line.swatch for line in _areas(stats))
    source = peaks or stats.engine
    running, waiting = (source.running, source.waiting) if source else (None, None)
    return [
        [(swatch[:1], style), (f" {formats.count(value)}", "strong"), (f" {name}", "")]
        for (swatch, style), value, name in ((runs, running, "run"), (waits, waiting, "wait"))
    ]
