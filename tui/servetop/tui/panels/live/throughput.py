"""The throughput panel: tokens per second, as received by the client and as counted by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.cost.hourly_price import recorded_prices
from servetop.analysis.cost.live_cost import cost_per_million_tokens
from servetop.analysis.live_stats import LiveStats
from servetop.core.text import formats
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import GUTTER, Axes, Bars, block_bars, chart
from servetop.tui.drawing.scale import peak_of, round_limit
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined, placard
from servetop.tui.panels.baseline_parts import bars_or_lines, delta, named
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.availability import why_missing, why_outdated
from servetop.tui.state.baseline import Baseline
from servetop.tui.state.frame import Frame

_WIDE = 42
"""Cells from which the title has room for input and output; in fewer the input is above the bars."""


class ThroughputPanel(TimeChart):
    """Output and input tokens per second."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        rates, wide = frame.stats.rates, _is_wide(self.size.width)
        if frame.watched:
            return _counted(frame, wide)
        cost = _cost(frame)
        unit = " tok/s out" if wide and not cost else " tok/s"
        output: TextRow = [("Throughput ", "title"), (formats.count(rates.output_tokens), "strong"), (unit, "")]
        baseline = frame.shown_baseline
        change = [delta(rates.output_tokens, baseline.rates_now["output_tokens"])] if baseline else []
        entered: TextRow = [(formats.count(rates.prompt_tokens), "strong"), (" in", "")]
        return [output, *change, *cost, *[entered][:wide]]

    def peak(self, frame: Frame) -> float:
        smoothed, baseline = frame.stats.series.smoothed, frame.shown_baseline
        before = [baseline.rates["output_tokens"]] if baseline else []
        return peak_of(smoothed["output_tokens"].mean, smoothed["engine_output_tokens"].mean, *before)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        if frame.watched:
            if missing := why_missing(frame, "generation_tokens_total"):
                return placard(missing, width=width, height=height)
            return draw_engine_throughput(frame.stats, self.axes(frame), width, height)
        return draw_throughput(frame.stats, self.axes(frame), width, height, baseline=frame.shown_baseline)


def _counted(frame: Frame, wide: bool) -> Sequence[TextRow]:
    """Return the title of a watched server: its own count, or why there is none now."""
    if why_missing(frame, "generation_tokens_total"):
        return [[("Throughput", "title")]]
    if lost := why_outdated(frame):
        return [[("Throughput ", "title"), (lost, "warn")] if wide else [(lost, "warn")]]
    counted: TextRow = [("Throughput ", "title"), (formats.count(frame.stats.rates.engine_output_tokens), "strong")]
    return [[*counted, (" tok/s out, engine's count" if wide else " tok/s", "")]]


def _cost(frame: Frame) -> list[TextRow]:
    """Return what a million tokens cost now; nothing for a run without a price."""
    prices = recorded_prices(frame.header.config)
    if prices is None:
        return []
    cost = cost_per_million_tokens(prices.server, frame.stats.rates, frame.stats.gpus)
    return [[(formats.money(cost, prices.server.currency), "strong"), ("/Mtok", "")]]


def draw_throughput(
    stats: LiveStats, axes: Axes, width: int, height: int, *, baseline: Baseline | None = None
) -> list[TextRow]:
    """Output as a chart; input has a scale of its own, because it is often ten times the output."""
    series = stats.series
    output, engine_output = (series.smoothed[name].mean for name in ("output_tokens", "engine_output_tokens"))
    client = ChartLine(times=series.times, values=output, style="sky")
    engine = ChartLine(times=series.times, values=engine_output, style="orange", dash="dashed")
    before = None if baseline is None else baseline.rates["output_tokens"]
    if height < 6:
        bars = Bars(times=series.times, values=output, style="sky")
        first = [] if _is_wide(width) or height < 2 else [fitted(_input(stats), width)]
        rows = max(height - len(first), 1)
        return [*first, *bars_or_lines(bars, axes, before, baseline=baseline, width=width, height=rows)]
    counted = not np.isnan(series.engine_output_tokens).all()
    parts: list[TextRow] = [[client.swatch, (" out", "muted")], *named(baseline)]
    if not _is_wide(width):
        parts.append(_input(stats))
    if counted:
        count = f"{formats.count(stats.rates.engine_output_tokens):>6}"
        parts.append([engine.swatch, (" out, engine's count ", "muted"), (count, "strong")])
    lines = [] if baseline is None or before is None else baseline.lines(before, beside=client)
    traces = [*lines, engine, client] if counted else [*lines, client]
    return [
        joined(parts, width=width),
        _input_row(stats, axes, width),
        *chart(traces, axes, width=width, height=height - 2),
    ]


def draw_engine_throughput(stats: LiveStats, axes: Axes, width: int, height: int) -> Sequence[TextRow]:
    """Output tokens/s by the engine's own count, as of a watched server; as bars in few rows."""
    times, counted = stats.series.times, stats.series.smoothed["engine_output_tokens"].mean
    if height < 6:
        bars = Bars(times=times, values=counted, style="orange")
        return bars_or_lines(bars, axes, None, baseline=None, width=width, height=height)
    return chart([ChartLine(times=times, values=counted, style="orange")], axes, width=width, height=height)


def _is_wide(width: int) -> bool:
    """Whether the title has room for input and output."""
    return width >= _WIDE


def _input(stats: LiveStats) -> TextRow:
    return [("in ", "muted"), (f"{formats.count(stats.rates.prompt_tokens):>6}", "strong"), (" tok/s", "muted")]


def _input_row(stats: LiveStats, axes: Axes, width: int) -> list[Run]:
    """Input tokens/s as a sparkline above the chart, on its time axis."""
    bars = Bars(times=stats.series.times, values=stats.series.prompt_tokens, style="green")
    own = replace(axes, limit=round_limit(peak_of(stats.series.prompt_tokens)))
    name = f"{'in':>{GUTTER - 1}} "
    return [(name, "muted"), *block_bars(bars, own, width=width - GUTTER)[0]] if width >= 2 * GUTTER else []
