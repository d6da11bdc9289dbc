"""Loads of a search with the figure of an objective, a share or a mean: points with intervals, limit and answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from servetop.core.text import formats
from servetop.tui.drawing.charts import GUTTER
from servetop.tui.drawing.text_runs import Run, TextRow, merged, placard

MARKS = {"kept": ("●", "good"), "missed": ("✗", "bad"), "open": ("○", "warn")}
"""Symbol and style of a load by its verdict."""
_DECADES = 10.0
"""The load axis is logarithmic from this ratio of its ends on."""
_BELOW = 10.0
"""The lowest figure on the axis is the allowed one divided by this; smaller ones are drawn at the bottom."""
_ABOVE = 10.0
"""The highest mean on the axis is this many times the allowed one; larger ones are drawn at the top."""
_LEAST_ROWS, _LEAST_COLUMNS = 5, 16
_TICKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """One load, and its figure with its interval: the share of samples that missed the limit, or a mean in seconds."""

    load: float
    figure: float
    low: float
    high: float
    verdict: str
    """A key of `MARKS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadScale:
    """An axis of loads; its first and last tick are its ends."""

    ticks: tuple[float, ...]
    logarithmic: bool

    @classmethod
    def of(cls, loads: Sequence[float]) -> LoadScale:
        """Return the axis for some loads above 0, logarithmic if they span more than a decade.

        It ends at round numbers, so that it keeps still while loads are added.
        """
        low, high = min(loads), max(loads)
        if high >= _DECADES * low:
            steps = [factor * 10.0**power for power in range(-3, 8) for factor in (1, 2, 5)]
            first = max(number for number, each in enumerate(steps) if each <= low)
            last = next(number for number, each in enumerate(steps) if each >= high)
            return cls(ticks=tuple(steps[first : last + 1]), logarithmic=True)
        rough = max(high - low, high / _DECADES) / _TICKS
        magnitude = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= rough)
        first, last = math.floor(low / step), math.ceil(high / step)
        return cls(ticks=tuple(number * step for number in range(first, max(last, first + 1) + 1)), logarithmic=False)

    def place(self, load: float) -> float:
        """Return where a load is between the ends, 0 to 1; a load beyond them is at the nearest end."""
        low, high = self.ticks[0], self.ticks[-1]
        load = min(max(load, low), high)
        return math.log(load / low) / math.log(high / low) if self.logarithmic else (load - low) / (high - low)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAxes:
    """What a chart of loads shows besides its points."""

    allowed: float
    """The share that may miss the limit, or the limit of a mean in seconds; it has a line."""
    scale: LoadScale
    answer: tuple[float, float] | None = None
    """The interval of the answer; None while it is not known."""
    now: float | None = None
    """The load that is kept now, marked on the axis."""
    label: Callable[[float], str]
    """Formats a load."""
    mean: bool = False
    """Whether the figures are means instead of shares."""


class _Canvas:
    """Cells of a chart; both axes map values to cells."""

    def __init__(self, axes: LoadAxes, *, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self._scale = axes.scale
        self._lowest = axes.allowed / _BELOW
        self._span = math.log((_ABOVE * axes.allowed if axes.mean else 1.0) / self._lowest)
        self.cells: list[list[Run]] = [[(" ", "")] * columns for _ in range(rows)]

    def column(self, load: float) -> int:
        """Return the column of a load."""
        return round(self._scale.place(load) * (self.columns - 1))

    def row(self, figure: float) -> int:
        """Return the row of a figure from the top; the nearest one for a figure beyond the axis."""
        place = math.log(max(figure, self._lowest) / self._lowest) / self._span
        return self.rows - 1 - round(min(place, 1.0) * (self.rows - 1))

    def fill(self, column: int, rows: range, run: Run) -> None:
        """Draw one symbol in a column, over what was there."""
        for row in rows:
            self.cells[row][column] = run


def draw_loads(points: Sequence[LoadPoint], axes: LoadAxes, *, width: int, height: int) -> list[TextRow]:
    """Return the points over the load; the figure is logarithmic, from a tenth of what is allowed.

    A share reaches to all samples, a mean to ten times its limit. Later points cover earlier ones.
    """
    rows, columns = height - 2, width - GUTTER
    if rows < _LEAST_ROWS - 2 or columns < _LEAST_COLUMNS:
        return placard("no room", width=width, height=height)
    canvas = _Canvas(axes, rows=rows, columns=columns)
    limit = canvas.row(axes.allowed)
    for column in range(columns):
        canvas.cells[limit][column] = ("╌", "warn")
    for edge in axes.answer or ():
        canvas.fill(canvas.column(edge), range(rows), ("┊", "sky"))
    for point in points:
        column = canvas.column(point.load)
        symbol, style = MARKS[point.verdict]
        canvas.fill(column, range(canvas.row(point.high), canvas.row(point.low) + 1), ("│", style))
        canvas.cells[canvas.row(point.figure)][column] = (symbol, style)
    labels = _mean_labels(canvas, axes.allowed) if axes.mean else _share_labels(canvas, axes.allowed)
    plot: list[TextRow] = [[labels.get(y, (" " * (GUTTER - 1) + "│", "faint")), *merged(row)] for y, row in
                           enumerate(canvas.cells)]  # fmt: skip
    return [*plot, _load_line(canvas, axes), _load_labels(canvas, axes)]


def _share_labels(canvas: _Canvas, allowed: float) -> dict[int, Run]:
    """Return the labels of the vertical axis by row: all samples, none, the allowed share, and decades with room."""
    limit = canvas.row(allowed)
    labels = {canvas.rows - 1: (f"{'0 %':>{GUTTER - 1}}┤", "faint"), 0: (f"{'100 %':>{GUTTER - 1}}┤", "faint")}
    for share in (0.1, 0.01, 0.001):
        row = canvas.row(share)
        if row not in labels and abs(row - limit) > 1 and 0 < row < canvas.rows - 1:
            labels[row] = (f"{share * 100:g} %".rjust(GUTTER - 1) + "┤", "faint")
    labels[limit] = (f"{allowed * 100:.3g} %".rjust(GUTTER - 1) + "┤", "warn")
    return labels


def _mean_labels(canvas: _Canvas, limit: float) -> dict[int, Run]:
    """Return the labels of the vertical axis by row: both ends and the limit."""
    ends = {
        canvas.row(each): (f"{formats.axis_seconds(each):>{GUTTER - 1}}┤", "faint")
        for each in (limit / _BELOW, _ABOVE * limit)
    }
    return ends | {canvas.row(limit): (f"{formats.axis_seconds(limit):>{GUTTER - 1}}┤", "warn")}


def _load_line(canvas: _Canvas, axes: LoadAxes) -> TextRow:
    """Return the horizontal axis, on which the interval of the answer and the load that is kept now are marked."""
    line: list[Run] = [("─", "faint")] * canvas.columns
    if axes.answer is not None:
        first, last = (canvas.column(edge) for edge in axes.answer)
        line[first : last + 1] = [("━", "sky")] * (last + 1 - first)
    if axes.now is not None:
        line[canvas.column(axes.now)] = ("◆", "cursor")
    return merged([(" " * (GUTTER - 1) + "└", "faint"), *line])


def _load_labels(canvas: _Canvas, axes: LoadAxes) -> TextRow:
    """Return the labels below the horizontal axis, those without room omitted."""
    text = ""
    for value in axes.scale.ticks:
        label = axes.label(value)
        start = min(max(canvas.column(value) - len(label) // 2, 0), canvas.columns - len(label))
        if start >= len(text) + bool(text):
            text = text.ljust(start) + label
    return [(" " * GUTTER + text, "faint")]


def legend(*, width: int) -> TextRow:
    """Return what the symbols mean, as far as there is room."""
    parts = [(*MARKS["kept"], "kept"), (*MARKS["missed"], "missed"), (*MARKS["open"], "open"), ("◆", "cursor", "now")]
    row: list[Run] = []
    for symbol, style, text in parts:
        if sum(len(each) for each, _ in row) + len(text) + 3 > width:
            break
        row += [(f"{' ' if row else ''}{symbol} ", style), (text, "muted")]
    return row


def percent(share: float) -> str:
    """Return a share in a table: `2.1 %`, without a decimal from 10 % on."""
    return f"{share * 100:.0f} %" if share >= 0.0995 else formats.percent(share, zeros="never")
