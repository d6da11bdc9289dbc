"""The queue panel: running and waiting requests of the engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.analysis.live_stats import LiveStats
from servetop.tui.drawing import formats
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, Bars, block_bars, chart, legend
from servetop.tui.drawing.scale import peak_of
from servetop.tui.drawing.text_runs import TextRow, joined, placard
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.availability import staleness, why_missing
from servetop.tui.state.frame import Frame

ROOM_FOR_REPLICAS = 14
"""Rows from which the table of replicas is shown below the chart."""


class QueuePanel(TimeChart):
    """Running and waiting requests, stacked."""

    axes_from = 5

    def title(self, frame: Frame) -> Sequence[TextRow]:
        sample = frame.stats.engine
        if why_missing(frame, "running", "waiting") or sample is None:
            return [[("Queue", "title")]]
        return [
            [("Queue ", "title"), (formats.count(sample.running), "strong"), (" run", "")],
            [(formats.count(sample.waiting), "strong"), (" wait", "")],
        ]

    def subtitle(self, frame: Frame) -> TextRow:
        return [(staleness(frame), "warn")]

    def peak(self, frame: Frame) -> float:
        series = frame.stats.series
        return peak_of(series.running + np.nan_to_num(series.waiting))

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        missing = why_missing(frame, "running", "waiting")
        if missing:
            return placard(missing, width=width, height=height)
        replicas = frame.replicas(width) if height >= ROOM_FOR_REPLICAS else ()
        room = max(height - len(replicas), self.axes_from) if replicas else height
        chart_rows = draw_queue(frame.stats, self.axes(frame), width, room)
        return [*chart_rows, *replicas][:height]


def draw_queue(stats: LiveStats, axes: Axes, width: int, height: int) -> list[TextRow]:
    """Running requests below, waiting ones on top of them (hatched)."""
    series, sample = stats.series, stats.engine
    both = series.running + np.nan_to_num(series.waiting)
    waits = ChartLine(times=series.times, values=both, style="orange", dash="dashed", area=True)
    runs = ChartLine(times=series.times, values=series.running, style="sky", area=True)
    running = sample.running if sample else None
    waiting = sample.waiting if sample else None
    if height < 5:
        named_values = (("run", running), ("wait", waiting))
        first = joined(
            ([(f"{name} ", "muted"), (f"{formats.count(value):>4}", "strong")] for name, value in named_values),
            width=width,
            gap="  ",
        )
        bars = Bars(times=series.times, values=both, style="orange")
        return [first, *block_bars(bars, axes, width=width, height=max(height - 1, 1))]
    parts = [(runs, "run", f"{formats.count(running):>5}"), (waits, "wait", f"{formats.count(waiting):>5}")]
    return [legend(parts, width=width), *chart([waits, runs], axes, width=width, height=height - 1)]
