"""The heat map panel: the charted latency by time and count."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from servetop.tui.drawing.charts import GUTTER, Axes, time_axis, with_cursor
from servetop.tui.drawing.formats import axis_seconds
from servetop.tui.drawing.heat_map import SHADES, HeatMap, heat_map
from servetop.tui.drawing.text_runs import TextRow, joined, placard
from servetop.tui.panels.live.latency import LABELS
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.frame import Frame


class HeatPanel(TimeChart):
    """Time across, latency up (logarithmic), count as shade."""

    axes_from = 0
    _drawn: HeatMap | None = None
    _above = 0
    """Rows above its cells."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        counted = "tokens" if frame.view.metric == "itl" else "requests"
        label = LABELS[frame.view.metric]
        return [[("Heat map ", "title"), (label, "strong")], [(f"{counted} by {label} and time", "muted")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        below = 2 if height >= 5 else 0
        shape = (height - below, width - GUTTER)
        drawn = heat_map(frame.heat, frame.stats.series.times, window=frame.window, shape=shape)
        self._drawn, self._above = drawn, 1 if below else 0
        if drawn is None:
            return placard("nothing measured yet", width=width, height=height)
        return draw_heat(drawn, self.axes(frame), width, height)

    def latency_under(self, event: events.MouseEvent) -> float | None:
        offset, drawn = event.get_content_offset(self), self._drawn
        row = -1 if offset is None else offset.y - self._above
        return drawn.latency(row) if drawn is not None and 0 <= row < drawn.counts.shape[0] else None


def draw_heat(drawn: HeatMap, axes: Axes, width: int, height: int) -> list[TextRow]:
    """The legend, the cells with the latency at their top, middle and bottom, and the time axis."""
    cells = with_cursor(drawn.cells(), axes, width - GUTTER)
    labels = {0: drawn.high, len(cells) - 1: drawn.low}
    if len(cells) >= 5:
        labels[len(cells) // 2] = (drawn.low * drawn.high) ** 0.5
    rows: list[TextRow] = [[*_gutter(labels.get(y)), *row] for y, row in enumerate(cells)]
    if height < 5:
        return rows
    shades: TextRow = [("few ", "muted"), *SHADES, (" many", "muted")]
    peak = f"max {drawn.counts.max():,.0f} per cell"
    below = time_axis(axes.window, width - GUTTER, GUTTER, from_now=axes.from_now)
    return [joined([shades, [(peak, "muted")]], width=width), *rows, below]


def _gutter(value: float | None) -> TextRow:
    return [(" " * (GUTTER - 1) + "│" if value is None else f"{axis_seconds(value):>{GUTTER - 1}}┤", "faint")]
