"""The queue panel: running and waiting requests of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.live_stats import LiveStats
from servetop.tui.drawing import formats
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, Bars, block_bars, chart
from servetop.tui.drawing.scale import peak_of
from servetop.tui.drawing.text_runs import TextRow, joined, placard, shortened
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.availability import why_missing, why_outdated
from servetop.tui.state.frame import Frame

ROOM_FOR_REPLICAS = 14
"""Rows from which the table of replicas is shown below the chart."""
_WIDE = 30
"""Cells from which the title has room for both numbers; in fewer they are above the bars."""
_NARROW = 22
"""Cells from which they have their swatches there."""


class QueuePanel(TimeChart):
    """Running and waiting requests, stacked."""

    axes_from = 5

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if why_missing(frame, "running", "waiting"):
            return [[("Queue", "title")]]
        if self.size.width < _WIDE:
            return [[("Queue", "title")]]
        if lost := why_outdated(frame):
            return [[("Queue ", "title"), (lost, "warn")]]
        first, *others = _values(frame.stats)
        return [[("Queue ", "title"), *first], *others]

    def peak(self, frame: Frame) -> float:
        series = frame.stats.series
        return peak_of(series.running + np.nan_to_num(series.waiting))

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        missing = why_missing(frame, "running", "waiting")
        if missing:
            return placard(missing, width=width, height=height)
        replicas = frame.replicas(width) if height >= ROOM_FOR_REPLICAS else ()
        room = max(height - len(replicas), self.axes_from) if replicas else height
        chart_rows = draw_queue(frame.stats, self.axes(frame), width, room, lost=why_outdated(frame))
        return [*chart_rows, *replicas][:height]

    def axes(self, frame: Frame) -> Axes:
        return replace(super().axes(frame), smallest_step=1.0)


def draw_queue(stats: LiveStats, axes: Axes, width: int, height: int, *, lost: str = "") -> list[TextRow]:
    """Running requests below, waiting ones on top of them (hatched); in few rows both as bars.

    Narrow panels have the values above, or the reason why they are `lost`.
    """
    above = [_above(stats, width, lost)] if width < _WIDE and height > 1 else []
    waits, runs = _areas(stats)
    if height >= QueuePanel.axes_from:
        return [*above, *chart((waits, runs), axes, width=width, height=height - len(above))]
    bars = Bars(
        times=waits.times, values=waits.values, style=runs.style, alert=waits.values > runs.values,
        alert_style=waits.style,
    )  # fmt: skip
    return [*above, *block_bars(bars, axes, width=width, height=max(height - len(above), 1))]


def _above(stats: LiveStats, width: int, lost: str) -> TextRow:
    if lost:
        return [(shortened(lost, width), "warn")]
    narrow = width < _NARROW
    parts = [part[1:] for part in _values(stats)] if narrow else _values(stats)
    return joined(parts, width=width, gap="" if narrow else "  ")


def _areas(stats: LiveStats) -> tuple[ChartLine, ChartLine]:
    """Running and waiting requests together, and the running ones alone."""
    series = stats.series
    both = series.running + np.nan_to_num(series.waiting)
    waits = ChartLine(times=series.times, values=both, style="orange", dash="dashed", area=True)
    return waits, ChartLine(times=series.times, values=series.running, style="sky", area=True)


def _values(stats: LiveStats) -> list[TextRow]:
    """Running and waiting requests, each after the first cell of its swatch."""
    waits, runs = (line.swatch for line in _areas(stats))
    running, waiting = (stats.engine.running, stats.engine.waiting) if stats.engine else (None, None)
    return [
        [(swatch[:1], style), (f" {formats.count(value)}", "strong"), (f" {name}", "")]
        for (swatch, style), value, name in ((runs, running, "run"), (waits, waiting, "wait"))
    ]
