"""The latency panel: percentiles over the sliding window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.live_stats import LATENCIES, LiveStats, Percentiles
from servetop.tui.drawing import formats
from servetop.tui.drawing.braille import SWATCHES, ChartLine
from servetop.tui.drawing.charts import Axes, Bars, block_bars, chart
from servetop.tui.drawing.formats import axis_seconds
from servetop.tui.drawing.scale import peak_of
from servetop.tui.drawing.text_runs import Run, TextRow, fitted
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.frame import Frame

LABELS = {"ttft": "TTFT", "itl": "ITL", "e2el": "E2EL"}
_NAME, _FIGURE = 6, 10
"""Cells of a metric's name and of each value."""
_CLOSE = 9
"""Cells of each value if the columns' names are in the title."""
_HEADER_FROM, _CHART_FROM = 4, 6
"""Rows from which the columns have a row for their names, and from which there is a chart with axes."""
_STYLES = (("p50", "sky", "solid"), ("p90", "orange", "dashed"), ("p99", "rose", "dotted"))


class LatencyPanel(TimeChart):
    """TTFT, ITL and E2EL at p50, p90 and p99; one of them over time."""

    axes_from = _CHART_FROM

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if 0 < self.size.height < _HEADER_FROM:
            return [_columns_above(self.size.width)]
        percentiles = frame.stats.latencies.get(frame.view.metric, Percentiles())
        return [
            [
                ("Latency ", "title"),
                (f"{LABELS[frame.view.metric]} p50 ", ""),
                (formats.seconds(percentiles.p50), "strong"),
            ],
            [("p99 ", ""), (formats.seconds(percentiles.p99), "strong")],
            [(f"over {frame.stats.window:.0f} s", "muted")],
        ]

    def watch_frame(self, frame: Frame | None) -> None:
        if frame is not None and frame.view.metric != self._charted:
            self._charted, self.limit = frame.view.metric, 0.0
        super().watch_frame(frame)

    _charted = ""

    def peak(self, frame: Frame) -> float:
        return peak_of(*frame.stats.series.latencies[frame.view.metric])

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        axes = replace(self.axes(frame), label=axis_seconds)
        return draw_latency(frame.stats, axes, width, height, metric=frame.view.metric)


def draw_latency(stats: LiveStats, axes: Axes, width: int, height: int, *, metric: str) -> list[TextRow]:
    """A table of metrics and percentiles, and a chart if there is room for one."""
    wide = _FIGURE if height >= _HEADER_FROM else _CLOSE
    table: list[TextRow] = [
        _percentile_row(stats, name, width, wide=wide, charted=name == metric) for name in LATENCIES
    ]
    if height < _HEADER_FROM:
        return table[:height]
    table.insert(0, _header(width))
    if height < _CHART_FROM:
        bars = Bars(times=stats.series.times, values=stats.series.latencies[metric][2], style="rose")
        return [*table, *(block_bars(bars, axes, width=width, height=height - 4) if height > 4 else [])]
    traces = [
        ChartLine(times=stats.series.times, values=np.asarray(values), style=style, dash=dash)
        for values, (_, style, dash) in zip(stats.series.latencies[metric], _STYLES, strict=True)
    ]
    return [*table, *chart(traces, axes, width=width, height=height - 4)]


def _columns_above(width: int) -> list[Run]:
    """The panel's name, and those of the percentiles above their columns: the title starts one cell further right."""
    names = "".join(f"{name:>{_CLOSE}}" for name, _, _ in _columns(width, wide=_CLOSE))
    return [("Latency", "title"), (names[len("Latency") - _NAME + 1 :], "muted")]


def _columns(width: int, *, wide: int = _FIGURE) -> tuple[tuple[str, str, str], ...]:
    """All percentiles, or without the middle one if there is no room."""
    return _STYLES if width >= _NAME + wide * len(_STYLES) else (_STYLES[0], _STYLES[2])


def _header(width: int) -> list[Run]:
    row: list[Run] = [(" " * _NAME, "")]
    for name, style, dash in _columns(width):
        row += [("   ", ""), (SWATCHES[dash], style), (f" {name}", "muted")]
    return fitted(row, width)


def _percentile_row(stats: LiveStats, metric: str, width: int, *, wide: int, charted: bool) -> list[Run]:
    percentiles = stats.latencies.get(metric, Percentiles())
    label = f"{'▸' if charted else ' '}{LABELS[metric]}"
    row: list[Run] = [(f"{label:<{_NAME}}", "strong" if charted else "muted")]
    if metric == "itl" and stats.events_unsized:
        return fitted([*row, ("tokens per event unknown", "muted")], width)
    for name, _, _ in _columns(width, wide=wide):
        row.append((f"{formats.seconds(getattr(percentiles, name)):>{wide}}", "strong" if charted else ""))
    return fitted(row, width)
