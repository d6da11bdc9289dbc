"""The throughput panel: tokens per second, as received by the client and as counted by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.live_stats import LiveStats
from servetop.tui.drawing import formats
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, Bars, block_bars, chart, legend
from servetop.tui.drawing.scale import peak_of, round_limit
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.frame import Frame


class ThroughputPanel(TimeChart):
    """Output and input tokens per second."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        rates = frame.stats.rates
        return [
            [("Throughput ", "title"), (formats.count(rates.output_tokens), "strong"), (" tok/s out", "")],
            [(formats.count(rates.prompt_tokens), "strong"), (" in", "")],
        ]

    def peak(self, frame: Frame) -> float:
        return peak_of(frame.stats.series.output_tokens, frame.stats.series.engine_output_tokens)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return draw_throughput(frame.stats, self.axes(frame), width, height)


def draw_throughput(stats: LiveStats, axes: Axes, width: int, height: int) -> list[TextRow]:
    """Output as a chart; input has a scale of its own, because it is often ten times the output."""
    series, rates = stats.series, stats.rates
    client = ChartLine(times=series.times, values=series.output_tokens, style="sky")
    engine = ChartLine(times=series.times, values=series.engine_output_tokens, style="orange", dash="dashed")
    if height < 6:
        bars = Bars(times=series.times, values=series.output_tokens, style="sky")
        first = joined(_values(stats), width=width, gap="  ")
        return [first, _input_row(stats, axes, width), *block_bars(bars, axes, width=width, height=max(height - 2, 1))]
    parts = [(client, "out", f"{formats.count(rates.output_tokens):>6}")]
    counted = not np.isnan(series.engine_output_tokens).all()
    if counted:
        parts.append((engine, "out by engine", f"{formats.count(rates.engine_output_tokens):>6}"))
    traces = [client, engine] if counted else [client]
    return [
        legend(parts, width=width),
        _input_row(stats, axes, width),
        *chart(traces, axes, width=width, height=height - 2),
    ]


def _values(stats: LiveStats) -> list[TextRow]:
    return [
        [("out ", "muted"), (f"{formats.count(stats.rates.output_tokens):>6}", "strong"), (" tok/s", "muted")],
        [("engine ", "muted"), (f"{formats.count(stats.rates.engine_output_tokens):>6}", "strong")],
    ]


def _input_row(stats: LiveStats, axes: Axes, width: int) -> list[Run]:
    figure: list[Run] = [
        ("in ", "muted"),
        (f"{formats.count(stats.rates.prompt_tokens):>7}", "strong"),
        (" tok/s ", "muted"),
    ]
    room = width - 17
    if room < 8:
        return fitted(figure, width)
    bars = Bars(times=stats.series.times, values=stats.series.prompt_tokens, style="green")
    own = replace(axes, limit=round_limit(peak_of(stats.series.prompt_tokens)))
    return [*figure, *block_bars(bars, own, width=room)[0]]
