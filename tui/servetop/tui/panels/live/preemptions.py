"""The preemptions panel: requests that the engine removed from its batch for lack of KV blocks."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.live_stats import LiveStats
from servetop.tui.drawing import formats
from servetop.tui.drawing.charts import Axes, Bars, bar_chart, block_bars
from servetop.tui.drawing.scale import peak_of
from servetop.tui.drawing.text_runs import TextRow, joined, placard
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.availability import staleness, why_missing
from servetop.tui.state.frame import Frame


class PreemptionsPanel(TimeChart):
    """Preemptions per second as bars, and their total."""

    axes_from = 5

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if why_missing(frame, "preemptions_total"):
            return [[("Preemptions", "title")]]
        rate, total = frame.stats.rates.preemptions, frame.stats.totals.preemptions
        return [
            [("Preemptions ", "title"), (formats.number(rate), "warn" if rate > 0 else "strong"), ("/s", "")],
            [("Σ ", ""), (formats.count(total), "strong")],
        ]

    def subtitle(self, frame: Frame) -> TextRow:
        return [(staleness(frame), "warn")]

    def peak(self, frame: Frame) -> float:
        return peak_of(frame.stats.series.preemptions)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        missing = why_missing(frame, "preemptions_total")
        if missing:
            return placard(missing, width=width, height=height)
        return draw_preemptions(frame.stats, self.axes(frame), width, height)


def draw_preemptions(stats: LiveStats, axes: Axes, width: int, height: int) -> list[TextRow]:
    """Rate, total, and bars over time."""
    bars = Bars(times=stats.series.times, values=stats.series.preemptions, style="vermilion")
    first = joined(
        [
            [("rate ", "muted"), (f"{formats.number(stats.rates.preemptions):>5}", "strong"), ("/s", "muted")],
            [("total ", "muted"), (f"{formats.count(stats.totals.preemptions):>5}", "strong")],
        ],
        width=width,
        gap="  ",
    )
    if height < 5:
        return [first, *block_bars(bars, axes, width=width, height=max(height - 1, 1))]
    return [first, *bar_chart(bars, axes, width=width, height=height - 1)]
