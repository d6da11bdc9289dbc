"""The load panel: requests offered, sent and completed."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.live_stats import LiveStats
from servetop.tui.drawing import formats
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, Bars, block_bars, chart, legend
from servetop.tui.drawing.scale import peak_of
from servetop.tui.drawing.text_runs import TextRow, joined
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.frame import Frame


class LoadPanel(TimeChart):
    """Requests per second: offered, sent, completed."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        rates = frame.stats.rates
        done, offered = formats.number(rates.completed), formats.number(rates.offered)
        return [[("Load ", "title"), (done, "strong"), (" of ", ""), (offered, "strong"), (" req/s", "")]]

    def peak(self, frame: Frame) -> float:
        series = frame.stats.series
        return peak_of(series.offered, series.sent, series.completed)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return draw_load(frame.stats, self.axes(frame), width, height)


def draw_load(stats: LiveStats, axes: Axes, width: int, height: int) -> list[TextRow]:
    """Numbers and a chart of the three rates; in few rows, numbers and a sparkline of completions."""
    series, rates = stats.series, stats.rates
    offered = ChartLine(times=series.times, values=series.offered, style="orange", dash="dashed")
    sent = ChartLine(times=series.times, values=series.sent, style="green", dash="dotted")
    done = ChartLine(times=series.times, values=series.completed, style="sky")
    counts = joined(_counts(stats), width=width, gap="  ")
    if height < 6:
        shown = (("done", rates.completed), ("offered", rates.offered), ("sent", rates.sent))
        first = joined(([(f"{name} ", "muted"), (f"{formats.number(rate):>5}", "strong")] for name, rate in shown),
                       width=width, gap="  ")  # fmt: skip
        spark = block_bars(
            Bars(times=series.times, values=series.completed, style="sky"), axes, width=width, height=max(height - 2, 1)
        )
        return [first, counts, *spark]
    named = legend(
        [
            (done, "done", f"{formats.number(rates.completed):>5}"),
            (offered, "offered", f"{formats.number(rates.offered):>5}"),
            (sent, "sent", f"{formats.number(rates.sent):>5}"),
        ],
        width=width,
    )
    return [named, counts, *chart([offered, sent, done], axes, width=width, height=height - 2)]


def _counts(stats: LiveStats) -> list[TextRow]:
    load, failed = stats.load, stats.totals.failed
    parts: list[TextRow] = [
        [("in flight ", "muted"), (f"{formats.count(load.in_flight):>5}", "strong")],
        [("queued ", "muted"), (f"{formats.count(load.queued):>4}", "strong")],
        [("✖ failed ", "bad"), (formats.count(failed), "bad")] if failed else [("failed ", "muted"), ("0", "strong")],
    ]
    if load.max_concurrency is not None:
        parts.append([("limit ", "muted"), (formats.count(load.max_concurrency), "strong")])
    if stats.totals.cancelled:
        parts.append([("cancelled ", "muted"), (formats.count(stats.totals.cancelled), "strong")])
    parts.append([("total ", "muted"), (formats.count(stats.totals.completed), "strong")])
    return parts
