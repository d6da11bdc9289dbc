"""The heat map panel: the charted latency by time and count, against its objective."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual import events

from servetop.core.text.formats import axis_seconds
from servetop.tui.drawing.charts import GUTTER, Axes, time_axis, with_cursor
from servetop.tui.drawing.heat_map import SHADES, HeatMap, heat_map
from servetop.tui.drawing.text_runs import Run, TextRow, joined, placard
from servetop.tui.panels.limit_line import STYLE, with_axis_label
from servetop.tui.panels.live.latency import felt_label, objective_note
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.frame import Frame


class HeatPanel(TimeChart):
    """Time across, latency up (logarithmic), count as shade; what is beyond the objective stands out."""

    axes_from = 0
    _drawn: HeatMap | None = None
    _above = 0
    """Rows above its cells."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        counted = "tokens" if frame.view.metric == "itl" else "requests"
        label = felt_label(frame.stats, frame.view.metric)
        return [[("Heat map ", "title"), (label, "strong")], [(f"{counted} by {label} and time", "muted")]]

    def subtitle(self, frame: Frame) -> TextRow:
        return objective_note(frame)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        below = 2 if height >= 5 else 0
        shape = (height - below, width - GUTTER)
        drawn = heat_map(frame.heat, frame.stats.series.times, window=frame.window, shape=shape)
        self._drawn, self._above = drawn, 1 if below else 0
        if drawn is None:
            return placard("nothing measured yet", width=width, height=height)
        limit = frame.header.config.goodput.get(frame.view.metric)
        return draw_heat(drawn, self.axes(frame), width, height, limit=limit)

    def latency_under(self, event: events.MouseEvent) -> float | None:
        offset, drawn = event.get_content_offset(self), self._drawn
        row = -1 if offset is None else offset.y - self._above
        return drawn.latency(row) if drawn is not None and 0 <= row < drawn.counts.shape[0] else None


def draw_heat(drawn: HeatMap, axes: Axes, width: int, height: int, *, limit: float | None = None) -> list[TextRow]:
    """The legend, the cells with the latency at their top and bottom and powers of ten between, and the time axis.

    The row of `limit` (seconds) has a line and its label, the rows above it another colour.
    """
    at = limit_row_of(drawn, limit)
    bare = [_beyond(row) if limit is not None and y < at else row for y, row in enumerate(drawn.cells())]
    if 0 <= at < len(bare):
        bare[at] = [(text.replace(" ", "┄"), style if text.strip() else STYLE) for text, style in _split(bare[at])]
    cells = with_cursor(bare, axes, width - GUTTER)
    labels = {**_powers_of_ten(drawn), 0: drawn.high, len(cells) - 1: drawn.low}
    rows: list[TextRow] = [[*_gutter(labels.get(y)), *row] for y, row in enumerate(cells)]
    if limit is not None and 0 <= at < len(rows):
        rows[at] = with_axis_label(rows[at], axis_seconds(limit))
    if height < 5:
        return rows
    shades: TextRow = [("few ", "muted"), *SHADES, (" many", "muted")]
    peak = f"max {drawn.counts.max():,.0f} per cell"
    below = time_axis(axes.window, width - GUTTER, GUTTER, from_now=axes.from_now)
    return [joined([shades, [(peak, "muted")]], width=width), *rows, below]


def _powers_of_ten(drawn: HeatMap) -> dict[int, float]:
    """Powers of ten by row from the top, with a row between two labels and the edges' own."""
    labels, above, last = {}, 0, len(drawn.counts) - 1
    for value in (10.0**power for power in range(8, -8, -1) if drawn.low < 10.0**power < drawn.high):
        row = limit_row_of(drawn, value)
        if above + 1 < row < last - 1:
            labels[row], above = value, row
    return labels


def limit_row_of(drawn: HeatMap, limit: float | None) -> int:
    """Return the row that contains a limit, from the top; -1 or the number of rows if it is above or below the map."""
    rows = len(drawn.counts)
    if limit is None or limit >= drawn.high:
        return -1
    share = math.log(limit / drawn.low) / math.log(drawn.high / drawn.low)
    return min(rows - 1 - math.floor(share * rows), rows)


def _beyond(row: Sequence[Run]) -> list[Run]:
    return [(text, "bad") for text, _ in row]


def _split(row: Sequence[Run]) -> list[Run]:
    """Return the same cells in runs that are either blank or not."""
    cells: list[Run] = []
    for text, style in row:
        for cell in text:
            if cells and cells[-1][1] == style and (cells[-1][0][-1] == " ") == (cell == " "):
                cells[-1] = (cells[-1][0] + cell, style)
            else:
                cells.append((cell, style))
    return cells


def _gutter(value: float | None) -> TextRow:
    return [(" " * (GUTTER - 1) + "│" if value is None else f"{axis_seconds(value):>{GUTTER - 1}}┤", "faint")]
