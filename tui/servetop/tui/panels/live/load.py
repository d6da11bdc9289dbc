"""The load panel: requests offered, sent and completed."""

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
from servetop.tui.drawing.text_runs import Run, TextRow, joined
from servetop.tui.panels.baseline_parts import bars_or_lines, delta, named
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.baseline import Baseline
from servetop.tui.state.frame import Frame

_WIDE = 38
"""Cells from which the title has room for the name of each rate."""
_ROOMY = 50
"""Cells from which the title has room for the meaning of the dotted lines in words."""
_CHART = 6
"""Rows from which there is a chart."""
_HELD_BACK = 0.05
"""Fraction of the offered rate that must be missing from the sent rate before that is drawn."""
_HEADROOM = 1.1
"""The axis reaches beyond the target and the smoothed rates by this factor."""
_SPIKE = 1.5
"""Multiple of the chart's limit above which a one-second rate is marked."""


class LoadPanel(TimeChart):
    """Requests per second: the target and what completed; in a closed loop, requests in flight and their limit."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        rates, load = frame.stats.rates, frame.stats.load
        done, offered = formats.number(rates.completed), formats.number(rates.offered)
        if is_closed_loop(frame.stats):
            limit: TextRow = (
                [] if load.max_concurrency is None else [(" of ", ""), (str(load.max_concurrency), "strong")]
            )
            users = [("Load ", "title"), (formats.count(load.in_flight), "strong"), *limit, (" in flight", "")]
            return [users, [(done, "strong"), (" req/s", "")], *_change(frame)]
        unit = " req/s done" if self.size.width >= _WIDE else " req/s"
        first: TextRow = [("Load ", "title"), (done, "strong"), (unit, "")]
        return [first, *_change(frame), [(offered, "strong"), (" offered", "")], *self._range_legend(frame)]

    def _range_legend(self, frame: Frame) -> list[TextRow]:
        """Return what the dotted lines of the chart are: the row above it is full of counts."""
        if frame.shown_baseline is not None or self.size.height < _CHART:
            return []
        swatch, name = _edges(frame.stats)[0].swatch, " 1 s range" if self.size.width >= _ROOMY else " 1 s"
        return [[(swatch[0][:1], swatch[1]), (name, "muted")]]

    def peak(self, frame: Frame) -> float:
        before = [] if frame.shown_baseline is None else [_before(frame.stats, frame.shown_baseline)]
        return peak_of(*(line.values for line, _ in _lines(frame.stats)), *before) * _HEADROOM

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return draw_load(frame.stats, self.axes(frame), width, height, baseline=frame.shown_baseline)


def _change(frame: Frame) -> list[TextRow]:
    """Return the difference of the completed requests/s from the baseline's."""
    baseline = frame.shown_baseline
    return [delta(frame.stats.rates.completed, baseline.rates_now["ok"])] if baseline else []


def _before(stats: LiveStats, baseline: Baseline) -> FloatArray:
    """Return what the baseline did: completed requests/s; in a closed loop, requests in flight."""
    return baseline.gauges["in_flight"] if is_closed_loop(stats) else baseline.rates["ok"]


def is_closed_loop(stats: LiveStats) -> bool:
    """Whether a number of users made the load on the time axis, rather than a rate; also after it ended."""
    series = stats.series
    return bool(np.isnan(series.target).all() and not np.isnan(series.target_concurrency).all())


def draw_load(
    stats: LiveStats, axes: Axes, width: int, height: int, *, baseline: Baseline | None = None
) -> list[TextRow]:
    """Counts and a chart of the load; in few rows, counts and a sparkline."""
    lines, before = _lines(stats), None if baseline is None else _before(stats, baseline)
    if height < _CHART:
        main = lines[-1][0]
        bars = Bars(times=main.times, values=main.values, style=main.style)
        counts = [joined(_counts(stats), width=width, gap="  ")] if height > 1 else []
        rows = height - len(counts)
        return [*counts, *bars_or_lines(bars, axes, before, baseline=baseline, width=width, height=rows)]
    swatches: list[TextRow] = [[line.swatch, (f" {name}", "muted")] for line, name in reversed(lines)]
    if baseline is None or before is None:
        below = [] if is_closed_loop(stats) else _edges(stats)
    else:
        below = baseline.lines(before, beside=lines[-1][0])
    plot = chart([*below, *(line for line, _ in lines)], _with_spike(stats, axes), width=width, height=height - 1)
    return [joined([*swatches, *named(baseline), *_counts(stats)], width=width, gap="  "), *plot]


def _lines(stats: LiveStats) -> list[tuple[ChartLine, str]]:
    """Return the lines of the chart with their names, the most important one last."""
    series = stats.series
    if is_closed_loop(stats):
        limit = _line(stats, series.target_concurrency, "orange", "dashed")
        return [(limit, "limit"), (_line(stats, series.in_flight, "sky"), "in flight")]
    offered, sent, done = (series.smoothed[name].mean for name in ("offered", "sent", "completed"))
    unknown = bool(np.isnan(series.target).all())
    wanted = _line(stats, offered if unknown else series.target, "orange", "dashed")
    lines = [(wanted, "offered" if unknown else "target"), (_line(stats, done, "sky"), "done")]
    held_back = sent < offered * (1 - _HELD_BACK) - 1 / stats.window
    if held_back.any():
        lines.insert(1, (_line(stats, np.where(held_back, sent, np.nan), "green", "dotted"), "sent"))
    return lines


def _line(stats: LiveStats, values: FloatArray, style: str, dash: str = "solid") -> ChartLine:
    return ChartLine(times=stats.series.times, values=values, style=style, dash=dash)


def _edges(stats: LiveStats) -> list[ChartLine]:
    """Return the edges of the range of most one-second rates."""
    done = stats.series.smoothed["completed"]
    return [_line(stats, edge, "faint", "dotted") for edge in (done.low, done.high)]


def _with_spike(stats: LiveStats, axes: Axes) -> Axes:
    """Return the axes with the largest one-second rate, if it is far above their limit."""
    if is_closed_loop(stats):
        return axes
    times, high = stats.series.times, np.nan_to_num(stats.series.smoothed["completed"].peak)
    shown = np.where(times > axes.window[0], high, 0.0)
    if not shown.size or shown.max() <= axes.limit * _SPIKE:
        return axes
    highest = int(shown.argmax())
    return replace(axes, spike=(float(times[highest]), float(shown[highest])))


def _counts(stats: LiveStats) -> list[TextRow]:
    load, failed = stats.load, stats.totals.failed
    failures: list[Run] = [("✖ failed ", "bad"), (formats.count(failed), "bad")]
    queued: list[Run] = [("queued ", "muted"), (f"{formats.count(load.queued):>4}", "strong")]
    flight: list[Run] = [("in flight ", "muted"), (f"{formats.count(load.in_flight):>4}", "strong")]
    shown = [queued] if is_closed_loop(stats) else ([queued, flight] if load.queued else [flight, queued])
    parts: list[TextRow] = [failures, *shown] if failed else [*shown]
    if not failed:
        parts.append([("failed ", "muted"), ("0", "strong")])
    if load.max_concurrency is not None and not is_closed_loop(stats):
        parts.append([("limit ", "muted"), (formats.count(load.max_concurrency), "strong")])
    if stats.totals.cancelled:
        parts.append([("cancelled ", "muted"), (formats.count(stats.totals.cancelled), "strong")])
    parts.append([("completed ", "muted"), (formats.count(stats.totals.completed), "strong")])
    return parts
