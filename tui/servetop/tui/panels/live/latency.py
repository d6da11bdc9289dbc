"""The latency panel: percentiles over the sliding window, TTFT as felt and as served, and the objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from servetop.analysis.live_stats import LiveStats, Percentiles
from servetop.analysis.series.stats_series import CHARTED, LATENCIES
from servetop.tui.drawing import formats
from servetop.tui.drawing.braille import SWATCHES, ChartLine
from servetop.tui.drawing.charts import Axes, Bars, block_bars, chart
from servetop.tui.drawing.end_labels import with_end_labels
from servetop.tui.drawing.formats import axis_seconds
from servetop.tui.drawing.scale import peak_of
from servetop.tui.drawing.text_runs import Run, TextRow, fitted
from servetop.tui.panels.limit_line import limit_trace, with_limit_label
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.frame import Frame

LABELS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}
_FELT_LABELS = {
    "ttft_due": ("TTFT as felt (from due)", "TTFT as felt", "felt"),
    "ttft": ("TTFT as served (from sent)", "TTFT as served", "served"),
}
"""Names of TTFT, longest first, where the time in the client's queue makes two of it."""
_NAME, _FIGURE = 6, 10
"""Cells of a metric's name and of each value."""
_CLOSE = 9
"""Cells of each value if the columns' names are in the title."""
_HEADER_FROM, _CHART_FROM = 4, 6
"""Rows from which the columns have a row for their names, and from which there is a chart with axes."""
_FEWEST, _CHART_ROWS = 3, 4
"""Rows of the table at least, and rows that the chart has before the table gets more."""
_STYLES = (("p50", "sky", "solid"), ("p90", "orange", "dashed"), ("p99", "rose", "dotted"))


class LatencyPanel(TimeChart):
    """TTFT, TPOT, ITL and E2EL at p50, p90 and p99; one of them over time."""

    axes_from = _CHART_FROM

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if 0 < self.size.height < _HEADER_FROM:
            return [_Table(frame.stats, self.size.width, _CLOSE).above()]
        metric = frame.view.metric
        percentiles = frame.stats.latencies.get(charted(frame.stats, metric), Percentiles())
        return [
            [
                ("Latency ", "title"),
                (f"{felt_label(frame.stats, metric)} p50 ", ""),
                (formats.seconds(percentiles.p50), "strong"),
            ],
            [("p99 ", ""), (formats.seconds(percentiles.p99), "strong")],
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
        peak = peak_of(*frame.stats.series.latencies[charted(frame.stats, frame.view.metric)])
        limit = frame.header.config.goodput.get(frame.view.metric, 0.0)
        return max(peak, limit) if peak > limit / 2 else peak

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        axes = replace(self.axes(frame), label=axis_seconds)
        objectives = frame.header.config.goodput
        return draw_latency(frame.stats, axes, width, height, metric=frame.view.metric, objectives=objectives)


def charted(stats: LiveStats, metric: str) -> str:
    """The name of a metric's values as the user felt them: TTFT counts from due where that differs."""
    return CHARTED.get(metric, metric) if stats.waits_in_client else metric


def felt_label(stats: LiveStats, metric: str) -> str:
    """`TTFT as felt` where the time in the client's queue counts, else the metric's name."""
    return f"{LABELS[metric]} as felt" if charted(stats, metric) != metric else LABELS[metric]


def objective_note(frame: Frame) -> TextRow:
    """The share of the window's values within the objective of the charted latency; empty without one."""
    limit = frame.header.config.goodput.get(frame.view.metric)
    if limit is None:
        return []
    share = formats.percent(frame.stats.within.get(frame.view.metric))
    return [(share, "strong"), (f" within {formats.seconds(limit)}", "muted")]


def draw_latency(
    stats: LiveStats, axes: Axes, width: int, height: int, *, metric: str, objectives: Mapping[str, float] | None = None
) -> list[TextRow]:
    """A table of metrics and percentiles, and a chart if there is room for one; what misses an objective stands out."""
    limits = objectives or {}
    table = _Table(stats, width, _FIGURE if height >= _HEADER_FROM else _CLOSE)
    shown = charted(stats, metric)
    names = _fitting_rows(stats, [shown, *(charted(stats, each) for each in limits)], height)
    rows: list[TextRow] = [table.row(each, charted=each == shown, limit=limits.get(_metric(each))) for each in names]
    if height < _HEADER_FROM:
        return rows[:height]
    rows.insert(0, table.header())
    left = height - len(rows)
    if height < _CHART_FROM:
        bars = Bars(times=stats.series.times, values=stats.series.latencies[shown][2], style="rose")
        return [*rows, *(block_bars(bars, axes, width=width, height=left) if left else [])]
    limit = limits.get(metric)
    plot = chart(_traces(stats, shown, axes, limit), axes, width=width, height=left)
    plot = with_end_labels(plot, axes, *_ends(stats, shown, limit), width=width)
    return [*rows, *with_limit_label(plot, axes, limit, width=width)]


def _metric(row: str) -> str:
    """The metric of a row of the table."""
    return next((metric for metric, name in CHARTED.items() if name == row), row)


def _fitting_rows(stats: LiveStats, first: Sequence[str], height: int) -> list[str]:
    """The rows that fit, in the table's order; the charted metric and those with an objective take precedence."""
    felt = tuple(CHARTED.values()) if stats.waits_in_client else ()
    rows = (*felt, *LATENCIES)
    most = max(height - 1 - _CHART_ROWS, _FEWEST)
    ranked = dict.fromkeys([first[0], *felt, "ttft", *first[1:], "e2el", "itl", "tpot"])
    kept = [row for row in ranked if row in rows][:most]
    return [row for row in rows if row in kept]


def _traces(stats: LiveStats, name: str, axes: Axes, limit: float | None) -> list[ChartLine]:
    """A line for each percentile, in another style beyond the objective, and the objective's own line below them."""
    times, traces = stats.series.times, []
    for values, (_, style, dash) in zip(stats.series.latencies[name], _STYLES, strict=True):
        beyond = np.zeros(values.shape, dtype=np.bool_) if limit is None else values > limit
        for part, own in ((np.where(beyond, np.nan, values), style), (np.where(beyond, values, np.nan), "bad")):
            if own == style or beyond.any():
                traces.append(ChartLine(times=times, values=part, style=own, dash=dash))
    return [*limit_trace(axes, limit), *traces]


def _ends(stats: LiveStats, name: str, limit: float | None) -> list[tuple[ChartLine, str]]:
    """The lowest and the highest line with their names, in the style that they have at their ends."""
    ends = []
    for values, (percentile, style, _) in zip(stats.series.latencies[name], _STYLES, strict=True):
        known = values[~np.isnan(values)]
        beyond = limit is not None and known.size and known[-1] > limit
        line = ChartLine(times=stats.series.times, values=values, style="bad" if beyond else style)
        ends.append((line, percentile))
    return [ends[0], ends[-1]]


@dataclass(frozen=True, slots=True)
class _Table:
    """The columns of the table for a width in cells: a name, and a value of `wide` cells for each percentile."""

    stats: LiveStats
    width: int
    wide: int

    @property
    def name(self) -> int:
        """Cells of the names: more where there are two kinds of TTFT."""
        if not self.stats.waits_in_client:
            return _NAME
        return max(len(each[self.form]) for each in _FELT_LABELS.values()) + 1

    @property
    def form(self) -> int:
        """Which names of both TTFTs fit: the longest beside three values, the middle beside two, else the shortest."""
        longest, middle = (max(len(each[form]) for each in _FELT_LABELS.values()) + 1 for form in (0, 1))
        return 0 if self.width >= longest + 3 * self.wide else 1 if self.width >= middle + 2 * self.wide else 2

    @property
    def columns(self) -> tuple[tuple[str, str, str], ...]:
        """All percentiles, or without the middle one if there is no room."""
        return _STYLES if self.width >= self.name + self.wide * len(_STYLES) else (_STYLES[0], _STYLES[2])

    def above(self) -> list[Run]:
        """The panel's name, and those of the percentiles above them: the title starts one cell further right."""
        names = " " * self.name + "".join(f"{name:>{self.wide}}" for name, _, _ in self.columns)
        return [("Latency", "title"), (names[len("Latency") + 1 :], "muted")]

    def header(self) -> list[Run]:
        """The percentiles' names above their columns, with the dash of their lines."""
        row: list[Run] = [(" " * self.name, "")]
        for column, style, dash in self.columns:
            row += [("   ", ""), (SWATCHES[dash], style), (f" {column}", "muted")]
        return fitted(row, self.width)

    def row(self, name: str, *, charted: bool, limit: float | None) -> list[Run]:
        """A metric's percentiles; those beyond `limit` (seconds) stand out."""
        percentiles = self.stats.latencies.get(name, Percentiles())
        both = self.stats.waits_in_client and name in _FELT_LABELS
        label = f"{'▸' if charted else ' '}{_FELT_LABELS[name][self.form] if both else LABELS[name]}"
        runs: list[Run] = [(f"{label:<{self.name}}", "strong" if charted else "muted")]
        if name == "itl" and self.stats.events_unsized:
            return fitted([*runs, ("tokens per event unknown", "muted")], self.width)
        for column, _, _ in self.columns:
            value = getattr(percentiles, column)
            style = "bad" if limit is not None and value > limit else "strong" if charted else ""
            runs.append((f"{formats.seconds(value):>{self.wide}}", style))
        return fitted(runs, self.width)
