"""The latency panel: percentiles over the sliding window, TTFT as felt and as served, and the objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.live_stats import LiveStats, Percentiles
from servetop.analysis.series.stats_series import CHARTED, LATENCIES
from servetop.core.text import formats
from servetop.core.text.formats import axis_seconds
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, Bars, chart
from servetop.tui.drawing.end_labels import with_end_labels
from servetop.tui.drawing.scale import peak_of
from servetop.tui.drawing.text_runs import TextRow
from servetop.tui.panels.baseline_parts import bars_or_lines, delta
from servetop.tui.panels.limit_line import limit_trace, with_limit_label
from servetop.tui.panels.live.latency_rows import CLOSE, LABELS, PERCENTILE_STYLES, WIDE, LatencyTable
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.baseline import Baseline
from servetop.tui.state.frame import Frame

_HEADER_FROM, _CHART_FROM = 4, 6
"""Rows from which the columns have a row for their names, and from which there is a chart with axes."""
_FEWEST, _CHART_ROWS = 3, 4
"""Rows of the table at least, and rows that the chart has before the table gets more."""


class LatencyPanel(TimeChart):
    """TTFT, TPOT, ITL and E2EL at p50, p90 and p99; one of them over time."""

    axes_from = _CHART_FROM

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if 0 < self.size.height < _HEADER_FROM:
            return [LatencyTable(frame.stats, self.size.width, CLOSE, frame.shown_baseline).above()]
        metric = frame.view.metric
        percentiles = frame.stats.latencies.get(charted(frame.stats, metric), Percentiles())
        baseline = frame.shown_baseline
        then = Percentiles() if baseline is None else baseline.latencies_now[charted(frame.stats, metric)]
        return [
            [
                ("Latency ", "title"),
                (f"{felt_label(frame.stats, metric)} p50 ", ""),
                (formats.seconds(percentiles.p50), "strong"),
            ],
            *([] if baseline is None else [delta(percentiles.p50, then.p50)]),
            [("p99 ", ""), (formats.seconds(percentiles.p99), "strong")],
            *([] if baseline is None else [delta(percentiles.p99, then.p99)]),
            [(f"over {frame.stats.window:.0f} s", "muted")],
        ]

    def subtitle(self, frame: Frame) -> TextRow:
        return objective_note(frame)

    def watch_frame(self, frame: Frame | None) -> None:
        if frame is not None and frame.view.metric != self._charted:
            self._charted, self.limit = frame.view.metric, 0.0
        super().watch_frame(frame)

    _charted = ""

    def peak(self, frame: Frame) -> float:
        """The largest value, or an objective that is less than twice as large, so that its line is in the chart."""
        shown, baseline = charted(frame.stats, frame.view.metric), frame.shown_baseline
        peak = peak_of(*frame.stats.series.latencies[shown], *(baseline.latencies[shown] if baseline else ()))
        limit = frame.header.config.goodput.get(frame.view.metric, 0.0)
        return max(peak, limit) if peak > limit / 2 else peak

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        axes = replace(self.axes(frame), label=axis_seconds)
        objectives = frame.header.config.goodput
        return draw_latency(
            frame.stats,
            axes,
            (width, height),
            metric=frame.view.metric,
            objectives=objectives,
            baseline=frame.shown_baseline,
        )


def charted(stats: LiveStats, metric: str) -> str:
    """Return the name of a metric's values as the user felt them: TTFT counts from due where that differs."""
    return CHARTED.get(metric, metric) if stats.waits_in_client else metric


def felt_label(stats: LiveStats, metric: str) -> str:
    """`TTFT as felt` where the time in the client's queue counts, else the metric's name."""
    return f"{LABELS[metric]} as felt" if charted(stats, metric) != metric else LABELS[metric]


def objective_note(frame: Frame) -> TextRow:
    """Return the share of the window's values within the objective of the charted latency; empty without one.

    It counts first tokens, those of requests in flight too; the header counts the requests that ended.
    """
    limit = frame.header.config.goodput.get(frame.view.metric)
    if limit is None:
        return []
    share = formats.percent(frame.stats.within.get(frame.view.metric))
    counted = "first tokens" if frame.view.metric in ("ttft", "ttfot") else "ended"
    return [(share, "strong"), (f" of {counted} within {formats.seconds(limit)}", "muted")]


def draw_latency(
    stats: LiveStats,
    axes: Axes,
    size: tuple[int, int],
    *,
    metric: str,
    objectives: Mapping[str, float] | None = None,
    baseline: Baseline | None = None,
) -> list[TextRow]:
    """A table of metrics and percentiles, and a chart if there is room for one; what misses an objective stands out."""
    width, height = size
    limits = objectives or {}
    table = LatencyTable(stats, width, WIDE if height >= _HEADER_FROM else CLOSE, baseline)
    shown = charted(stats, metric)
    names = _fitting_rows(stats, [shown, *(charted(stats, each) for each in limits)], height)
    rows: list[TextRow] = [table.row(each, charted=each == shown, limit=limits.get(_metric(each))) for each in names]
    if height < _HEADER_FROM:
        return rows[:height]
    rows.insert(0, table.header())
    left = height - len(rows)
    if height < _CHART_FROM:
        bars = Bars(times=stats.series.times, values=stats.series.latencies[shown][2], style="rose")
        before = None if baseline is None else baseline.latencies[shown][2]
        bars_below = bars_or_lines(bars, axes, before, baseline=baseline, width=width, height=left) if left else []
        return [*rows, *bars_below]
    limit = limits.get(metric)
    lines = _baseline_lines(stats, shown, baseline)
    plot = chart([*lines, *_traces(stats, shown, axes, limit)], axes, width=width, height=left)
    plot = with_end_labels(plot, axes, *_ends(stats, shown, limit), width=width)
    return [*rows, *with_limit_label(plot, axes, limit, width=width)]


def _baseline_lines(stats: LiveStats, name: str, baseline: Baseline | None) -> list[ChartLine]:
    """Return the baseline's p50 and p99, each with the difference shaded."""
    lines: list[ChartLine] = []
    for percentile in (0, 2) if baseline is not None else ():
        own = ChartLine(times=stats.series.times, values=stats.series.latencies[name][percentile], style="")
        lines += baseline.lines(baseline.latencies[name][percentile], beside=own) if baseline else []
    return lines


def _metric(row: str) -> str:
    """Return the metric of a row of the table."""
    return next((metric for metric, name in CHARTED.items() if name == row), row)


def _fitting_rows(stats: LiveStats, first: Sequence[str], height: int) -> list[str]:
    """The rows that fit, in the table's order: first the charted metric and ITL, then those with an objective."""
    felt = tuple(CHARTED.values()) if stats.waits_in_client else ()
    rows = (*felt, *LATENCIES)
    most = max(height - 1 - _CHART_ROWS, _FEWEST) if height >= _HEADER_FROM else min(height, _FEWEST)
    ranked = dict.fromkeys([first[0], "itl", *first[1:], *felt, "ttft", "e2el", "tpot"])
    kept = [row for row in ranked if row in rows][:most]
    return [row for row in rows if row in kept]


def _traces(stats: LiveStats, name: str, axes: Axes, limit: float | None) -> list[ChartLine]:
    """A line for each percentile, in another style beyond the objective, and the objective's own line below them."""
    times, traces = stats.series.times, []
    for values, (_, style, dash) in zip(stats.series.latencies[name], PERCENTILE_STYLES, strict=True):
        beyond = np.zeros(values.shape, dtype=np.bool_) if limit is None else values > limit
        for part, own in ((np.where(beyond, np.nan, values), style), (np.where(beyond, values, np.nan), "bad")):
            if own == style or beyond.any():
                traces.append(ChartLine(times=times, values=part, style=own, dash=dash))
    return [*limit_trace(axes, limit), *traces]


def _ends(stats: LiveStats, name: str, limit: float | None) -> list[tuple[ChartLine, str]]:
    """Return the lowest and the highest line with their names, in the style that they have at their ends."""
    ends = []
    for values, (percentile, style, _) in zip(stats.series.latencies[name], PERCENTILE_STYLES, strict=True):
        known = values[~np.isnan(values)]
        beyond = limit is not None and known.size and known[-1] > limit
        line = ChartLine(times=stats.series.times, values=values, style="bad" if beyond else style)
        ends.append((line, percentile))
    return [ends[0], ends[-1]]
