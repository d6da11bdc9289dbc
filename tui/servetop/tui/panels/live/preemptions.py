"""The preemptions panel: requests that the engine removed from its batch for lack of KV blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from servetop.analysis.live_stats import LiveStats
from servetop.core.text import formats
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, Bars, bar_chart, chart
from servetop.tui.drawing.scale import peak_of
from servetop.tui.drawing.text_runs import TextRow, joined, placard, shortened
from servetop.tui.panels.baseline_parts import bars_or_lines
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.availability import why_missing, why_outdated
from servetop.tui.state.baseline import Baseline
from servetop.tui.state.engine_peaks import EnginePeaks
from servetop.tui.state.frame import Frame

_WIDE = 30
"""Cells from which the title has room for both values; in fewer they are above the bars if there are two rows."""
_NAME: TextRow = (("Preemptions", "title"),)


class PreemptionsPanel(TimeChart):
    """Preemptions per second as bars, and their total."""

    axes_from = 5

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if why_missing(frame, "preemptions_total"):
            return [_NAME]
        narrow = self.size.width < _WIDE
        if narrow and self.size.height != 1:
            return [_NAME]
        if (lost := why_outdated(frame)) and not frame.peaks:
            return [[("Preemptions ", "title"), (lost, "warn")]]
        if not frame.stats.totals.preemptions > 0:
            return [[("Preemptions ", "title"), ("0", "strong")]]
        values = _values(frame.stats, frame.peaks)
        first, *others = [_total(frame.stats)] if narrow else values
        return [[("Preemptions ", "title"), *first], *others]

    def peak(self, frame: Frame) -> float:
        before = [] if frame.shown_baseline is None else [frame.shown_baseline.rates["preemptions"]]
        return peak_of(frame.stats.series.preemptions, *before)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        missing = why_missing(frame, "preemptions_total")
        if missing:
            return placard(missing, width=width, height=height)
        lost = "" if frame.peaks else why_outdated(frame)
        return draw_preemptions(
            frame.stats, self.axes(frame), (width, height), lost=lost, peaks=frame.peaks, baseline=frame.shown_baseline
        )


def draw_preemptions(
    stats: LiveStats,
    axes: Axes,
    size: tuple[int, int],
    *,
    lost: str = "",
    peaks: EnginePeaks | None = None,
    baseline: Baseline | None = None,
) -> list[TextRow]:
    """Return bars over time; a sentence while there was none.

    Narrow panels have the values above (the `peaks` of a finished run), or the reason why they are `lost`.
    """
    width, height = size
    before = (
        None if baseline is None else np.where(baseline.rates["preemptions"] > 0, baseline.rates["preemptions"], np.nan)
    )
    highest = peak_of(stats.series.preemptions, *([] if before is None else [before]))
    if not (stats.totals.preemptions > 0 or highest > 0):
        return placard("✓ none" if peaks else "✓ none so far", width=width, height=height)
    bars = Bars(times=stats.series.times, values=stats.series.preemptions, style="vermilion")
    values = [(shortened(lost, width), "warn")] if lost else joined(_values(stats, peaks), width=width, gap="  ")
    above: list[TextRow] = [values] if width < _WIDE and height > 1 else []
    if height < PreemptionsPanel.axes_from:
        rows = height - len(above)
        return [*above, *bars_or_lines(bars, axes, before, baseline=baseline, width=width, height=rows)]
    if baseline is not None and before is not None:
        area = ChartLine(times=bars.times, values=bars.values, style=bars.style, area=True)
        lines = (area, *baseline.lines(before, over_area=True))
        return [*above, *chart(lines, axes, width=width, height=height - len(above))]
    return [*above, *bar_chart(bars, axes, width=width, height=height - len(above))]


def _values(stats: LiveStats, peaks: EnginePeaks | None) -> list[TextRow]:
    """Return the rate of the window and the total; of a finished run the total and the highest rate."""
    if peaks is None:
        return [_rate(stats.rates.preemptions), _total(stats)]
    return [_total(stats), *([] if math.isnan(peaks.preemptions) else [[("peak ", ""), *_rate(peaks.preemptions)]])]


def _rate(rate: float) -> TextRow:
    return [(formats.number(rate), "warn" if rate > 0 else "strong"), ("/s", "")]


def _total(stats: LiveStats) -> TextRow:
    return [("Σ ", ""), (formats.count(stats.totals.preemptions), "strong")]
