"""Charts with axes, bars and gauges, as rows of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.text import formats
from servetop.tui.drawing.braille import ChartLine, raster
from servetop.tui.drawing.cursor import column_of, crossed
from servetop.tui.drawing.text_runs import Run, TextRow, joined, merged, overlaid
from servetop.tui.drawing.ticks import time_ticks, value_ticks

GUTTER = 6
"""Cells of the vertical axis and its labels; equal in all charts, so that their time axes align."""
EIGHTHS = " ▁▂▃▄▅▆▇█"
"""Bars of zero to eight eighths of a cell, from below."""
_LEFT_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The meaning of a chart's edges."""

    window: tuple[float, float]
    """Times at the left and right edges, seconds of the run."""
    limit: float
    """Value at the top; the bottom is 0."""
    label: Callable[[float], str] = formats.axis_number
    """Formats a value of the vertical axis in at most 5 characters."""
    smallest_step: float = 0.0
    """Between two labels of the vertical axis; 1 for values that are whole."""
    from_now: bool = False
    """Label distances from the right edge instead of times of the run."""
    across: Mapping[float, str] | None = None
    """Labels of the horizontal axis by value, if it is not time."""
    marks: tuple[float, ...] = ()
    """Times with a vertical line: stage changes."""
    cursor: float | None = None
    """The time whose column is marked."""
    spike: tuple[float, float] | None = None
    """Time and value of the largest value above the limit, which is written at the top."""


def chart(traces: Sequence[ChartLine], axes: Axes, *, width: int, height: int) -> list[TextRow]:
    """Traces with both axes; below 4 rows without the time axis, below 12 columns without the vertical one."""
    canvas, rows = width - (GUTTER if width >= 2 * GUTTER else 0), height - (height >= 4)
    drawn = raster(traces, width=canvas, height=rows, window=axes.window, limit=axes.limit)
    marked = with_marks(drawn, window=axes.window, marks=axes.marks, width=canvas)
    return _framed(with_cursor(_with_spike(marked, axes, canvas), axes, canvas), axes, width=width, height=height)


def _framed(plot: Sequence[list[Run]], axes: Axes, *, width: int, height: int) -> list[TextRow]:
    """Return the plot between its axes, as far as they have room."""
    gutter = GUTTER if width >= 2 * GUTTER else 0
    ticks = value_ticks(axes.limit, rows=len(plot), smallest_step=axes.smallest_step) if gutter else {}
    labels = {y: f"{axes.label(value):>{GUTTER - 1}}┤" for y, value in ticks.items()}
    left = [labels.get(y, " " * (GUTTER - 1) + "│") for y in range(len(plot))]
    rows: list[TextRow] = [[(label, "faint"), *row] if gutter else row for label, row in zip(left, plot, strict=True)]
    if axes.across is None:
        below = time_axis(axes.window, width - gutter, gutter, from_now=axes.from_now)
    else:
        below = _value_axis(axes.across, axes.window, width - gutter, gutter)
    return [*rows, below][:height]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bars:
    """Means over time bins that end at `times` (equal lengths, ascending); NaN is unknown."""

    times: FloatArray
    values: FloatArray
    style: str
    alert: BoolArray | None = None
    """Bins that are drawn in `alert_style`."""
    alert_style: str = "vermilion"


def bar_chart(bars: Bars, axes: Axes, *, width: int, height: int) -> list[TextRow]:
    """Return bars over time, with the axes of `chart`; each cell is the mean over its time."""
    canvas = width - (GUTTER if width >= 2 * GUTTER else 0)
    bare = block_bars(bars, axes, width=canvas, height=height - (height >= 4))
    drawn = with_marks(bare, window=axes.window, marks=axes.marks, width=canvas)
    return _framed(drawn, axes, width=width, height=height)


def block_bars(bars: Bars, axes: Axes, *, width: int, height: int = 1) -> list[list[Run]]:
    """Return bars in eighths of a cell without axes, at least one eighth for values above 0; one row is a sparkline."""
    means = _cell_means(bars.times, bars.values, axes.window, width)
    scaled = np.rint(np.nan_to_num(means) / axes.limit * height * 8)
    eighths = np.where(means > 0, np.maximum(scaled, 1), 0)
    levels = [np.clip(eighths - y * 8, 0, 8).astype(int) for y in reversed(range(height))]
    styles = [bars.style] * width
    if bars.alert is not None:
        shares = _cell_means(bars.times, bars.alert.astype(np.float64), axes.window, width)
        styles = [bars.alert_style if share >= 0.5 else bars.style for share in shares]
    drawn = [merged([(EIGHTHS[level], style) for level, style in zip(row, styles, strict=True)]) for row in levels]
    return with_cursor(drawn, axes, width)


def _cell_means(times: FloatArray, values: FloatArray, window: tuple[float, float], cells: int) -> FloatArray:
    """Differences of the integral at the cells' edges; NaN where nothing is known."""
    if not times.size:
        return np.full(cells, np.nan)
    step = float(np.diff(times).min()) if times.size > 1 else window[1] - window[0]
    edges = np.concatenate((times[:1] - step, times))
    known = np.concatenate(([0.0], np.cumsum(np.diff(edges) * ~np.isnan(values))))
    integral = np.concatenate(([0.0], np.cumsum(np.diff(edges) * np.nan_to_num(values))))
    at = np.linspace(*window, cells + 1)
    amount, time = (np.diff(np.interp(at, edges, each)) for each in (integral, known))
    means: FloatArray = np.divide(amount, time, out=np.full(cells, np.nan), where=time > 1e-9)
    return means


def gauge(share: float, *, width: int, style: str) -> list[Run]:
    """Return a horizontal bar, to an eighth of a cell: `██████▎·····`."""
    clipped = min(max(share, 0.0), 1.0) if not math.isnan(share) else 0.0
    eighths = round(clipped * width * 8)
    full, rest = divmod(eighths, 8)
    bar = "█" * full + (_LEFT_EIGHTHS[rest] if rest else "")
    return [(bar, style), ("·" * (width - len(bar)), "faint")]


def legend(parts: Sequence[tuple[ChartLine, str, str]], *, width: int) -> list[Run]:
    """Swatch, name and number of each series, as many as fit; numbers keep their column as they change."""
    return joined(
        ([trace.swatch, (f" {name} ", "muted"), (value, "strong")] for trace, name, value in parts), width=width
    )


def with_marks(
    rows: Sequence[list[Run]], *, window: tuple[float, float], marks: Sequence[float], width: int, style: str = "faint"
) -> list[list[Run]]:
    """Return a dotted vertical line at each mark, in blank cells only."""
    start, end = window
    columns = {round((at - start) / (end - start) * width) for at in marks if start < at < end}
    inside = sorted(column for column in columns if 0 <= column < width)
    return [_punctured(row, inside, style) for row in rows] if inside else list(rows)


def with_cursor(rows: Sequence[list[Run]], axes: Axes, width: int) -> list[list[Run]]:
    """Return the cursor's column through all rows, on top of the drawing: the value is in the title."""
    column = None if axes.cursor is None else column_of(axes.cursor, axes.window, width)
    return list(rows) if column is None else [crossed(row, column) for row in rows]


def _with_spike(rows: list[list[Run]], axes: Axes, width: int) -> list[list[Run]]:
    """`▲ 120` in the top row, at the time of the value that is too large for the chart."""
    column = None if axes.spike is None else column_of(axes.spike[0], axes.window, width)
    if axes.spike is None or column is None or not rows:
        return rows
    value = axes.label(axes.spike[1])
    fits = column + len(value) + 2 <= width
    text, start = (f"▲ {value}", column) if fits else (f"{value} ▲", column - len(value) - 1)
    return [overlaid(rows[0], max(start, 0), text, "muted"), *rows[1:]]


def _punctured(row: list[Run], columns: Sequence[int], mark: str) -> list[Run]:
    result: list[Run] = []
    position = 0
    for text, style in row:
        low = 0
        for column in (each - position for each in columns if position <= each < position + len(text)):
            if text[column] == " ":
                result += [(text[low:column], style), ("┊", mark)]
                low = column + 1
        result.append((text[low:], style))
        position += len(text)
    return result


def _value_axis(labels: Mapping[float, str], window: tuple[float, float], canvas: int, gutter: int) -> TextRow:
    """Labels centred below their values, those that overlap an earlier one omitted."""
    text = ""
    for value, label in sorted(labels.items()):
        column = round((value - window[0]) / (window[1] - window[0]) * (canvas - 1))
        start = min(max(column - len(label) // 2, 0), canvas - len(label))
        if start >= len(text) + bool(text):
            text = text.ljust(start) + label
    return [(" " * gutter + text[:canvas], "faint")]


def time_axis(window: tuple[float, float], canvas: int, gutter: int, *, from_now: bool = False) -> TextRow:
    """Times of the run, or distances from the right edge if `from_now`: these stay in place while the chart scrolls."""
    right = (formats.clock(window[1]) if canvas >= 30 else "now") if from_now else ""
    text = ""
    for column, label in time_ticks(window, width=canvas, from_now=from_now).items():
        if len(text) < column + bool(not text) and column + 1 + len(label) <= canvas - len(right) - bool(right):
            text = text.ljust(column) + "╵" + label
    return [(" " * gutter + text.ljust(canvas - len(right)) + right, "faint")]
