"""Charts with axes, bars and gauges, as rows of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.tui.drawing import formats
from servetop.tui.drawing.braille import ChartLine, raster
from servetop.tui.drawing.cursor import column_of, crossed
from servetop.tui.drawing.text_runs import Run, TextRow, joined

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
    label: Callable[[float], str] = formats.count
    """Formats a value of the vertical axis in at most 5 characters."""
    marks: tuple[float, ...] = ()
    """Times with a vertical line: stage changes."""
    cursor: float | None = None
    """The time whose column is marked."""


def chart(traces: Sequence[ChartLine], axes: Axes, *, width: int, height: int) -> list[TextRow]:
    """Traces with both axes; below 4 rows without the time axis, below 12 columns without the vertical one."""
    gutter = GUTTER if width >= 2 * GUTTER else 0
    below = 1 if height >= 4 else 0
    canvas, rows = width - gutter, height - below
    drawn = raster(traces, width=canvas, height=rows, window=axes.window, limit=axes.limit)
    marked = with_marks(drawn, window=axes.window, marks=axes.marks, width=canvas)
    marked = with_cursor(marked, axes, canvas)
    plot: list[TextRow] = [[*_gutter(y, rows, axes)[: bool(gutter)], *row] for y, row in enumerate(marked)]
    return [*plot, time_axis(axes.window, canvas, gutter)] if below else plot


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bars:
    """Means over time bins that end at `times` (equal lengths, ascending); NaN is unknown."""

    times: FloatArray
    values: FloatArray
    style: str


def bar_chart(bars: Bars, axes: Axes, *, width: int, height: int) -> list[TextRow]:
    """Bars over time, with the axes of `chart`; each cell is the mean over its time."""
    below = 1 if height >= 4 else 0
    canvas, rows = width - GUTTER, height - below
    bare = block_bars(bars, axes, width=canvas, height=rows)
    drawn = with_marks(bare, window=axes.window, marks=axes.marks, width=canvas)
    plot: list[TextRow] = [[*_gutter(y, rows, axes), *row] for y, row in enumerate(drawn)]
    return [*plot, time_axis(axes.window, canvas, GUTTER)] if below else plot


def block_bars(bars: Bars, axes: Axes, *, width: int, height: int = 1) -> list[list[Run]]:
    """Bars in eighths of a cell without axes, at least one eighth for values above 0; one row is a sparkline."""
    means = _cell_means(bars, axes.window, width)
    scaled = np.rint(np.nan_to_num(means) / axes.limit * height * 8)
    eighths = np.where(means > 0, np.maximum(scaled, 1), 0)
    levels = [np.clip(eighths - y * 8, 0, 8).astype(int) for y in reversed(range(height))]
    drawn: list[list[Run]] = [[("".join(EIGHTHS[level] for level in row), bars.style)] for row in levels]
    return with_cursor(drawn, axes, width)


def _cell_means(bars: Bars, window: tuple[float, float], cells: int) -> FloatArray:
    """Differences of the integral at the cells' edges; NaN where nothing is known."""
    if not bars.times.size:
        return np.full(cells, np.nan)
    step = float(np.diff(bars.times).min()) if bars.times.size > 1 else window[1] - window[0]
    edges = np.concatenate((bars.times[:1] - step, bars.times))
    known = np.concatenate(([0.0], np.cumsum(np.diff(edges) * ~np.isnan(bars.values))))
    integral = np.concatenate(([0.0], np.cumsum(np.diff(edges) * np.nan_to_num(bars.values))))
    at = np.linspace(*window, cells + 1)
    amount, time = (np.diff(np.interp(at, edges, each)) for each in (integral, known))
    means: FloatArray = np.divide(amount, time, out=np.full(cells, np.nan), where=time > 1e-9)
    return means


def gauge(share: float, *, width: int, style: str) -> list[Run]:
    """A horizontal bar, to an eighth of a cell: `██████▎·····`."""
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


def _gutter(y: int, rows: int, axes: Axes) -> list[Run]:
    labelled = {0: axes.limit, rows - 1: 0.0}
    if rows >= 7 and rows % 2:
        labelled[rows // 2] = axes.limit / 2
    if y not in labelled or (rows == 1 and y):
        return [(" " * (GUTTER - 1) + "│", "faint")]
    return [(f"{axes.label(labelled[y]):>{GUTTER - 1}}┤", "faint")]


def with_marks(
    rows: Sequence[list[Run]], *, window: tuple[float, float], marks: Sequence[float], width: int, style: str = "faint"
) -> list[list[Run]]:
    """A dotted vertical line at each mark, in blank cells only."""
    start, end = window
    columns = {round((at - start) / (end - start) * width) for at in marks if start < at < end}
    inside = sorted(column for column in columns if 0 <= column < width)
    return [_punctured(row, inside, style) for row in rows] if inside else list(rows)


def with_cursor(rows: Sequence[list[Run]], axes: Axes, width: int) -> list[list[Run]]:
    """The cursor's column through all rows, on top of the drawing: the value is in the title."""
    column = None if axes.cursor is None else column_of(axes.cursor, axes.window, width)
    return list(rows) if column is None else [crossed(row, column) for row in rows]


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


def time_axis(window: tuple[float, float], canvas: int, gutter: int) -> TextRow:
    """Distances from the right edge at the quarters of the axis: fixed positions, so that labels do not slide."""
    start, end = window
    span = end - start
    shares = (0.0, 0.25, 0.5, 0.75) if canvas >= 48 else ((0.0, 0.5) if canvas >= 20 else (0.0,))
    right = formats.clock_time(end) if canvas >= 30 else "now"
    text = ""
    for share in shares:
        label = f"−{formats.minutes(span * (1 - share))}"
        if round(share * canvas) + len(label) < canvas - len(right):
            text = text.ljust(round(share * canvas)) + label
    return [(" " * gutter + text.ljust(canvas - len(right)) + right, "faint")]
