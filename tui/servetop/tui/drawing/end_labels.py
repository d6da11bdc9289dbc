"""Names at the ends of a chart's highest and lowest line, which look alike without colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.core.arrays import FloatArray, IntArray
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import GUTTER, Axes
from servetop.tui.drawing.cursor import column_of
from servetop.tui.drawing.text_runs import TextRow, overlaid


def with_end_labels(
    plot: Sequence[TextRow], axes: Axes, low: tuple[ChartLine, str], high: tuple[ChartLine, str], *, width: int
) -> list[TextRow]:
    """The rows of `chart` with names right of the newest values; above and below the lines where these end at the edge.

    A name without a place is omitted. `low` is at most as high as `high` everywhere.
    """
    rows, gutter = len(plot) - (1 if len(plot) >= 4 else 0), GUTTER if width >= 2 * GUTTER else 0
    canvas, room = width - gutter, max(len(name) for _, name in (low, high)) + 1
    known = np.flatnonzero(~np.isnan(low[0].values) & ~np.isnan(high[0].values))
    newest = column_of(float(low[0].times[known[-1]]), axes.window, canvas) if known.size else None
    if newest is None or canvas < 3 * room:
        return list(plot)
    column = newest + 2
    if column + room <= canvas + 1:
        at = _beside(_rows(low[0].values[known[-1:]], axes, rows)[0], _rows(high[0].values[known[-1:]], axes, rows)[0])
        lower, upper = at if at[0] < rows else (at[0] - 1, at[1] - 1)
    else:
        column = canvas - room + 1
        start = axes.window[1] - (canvas - column + 1) / canvas * (axes.window[1] - axes.window[0])
        ends = [line.values[known][line.times[known] > start] for line, _ in (low, high)]
        lower, upper = _rows(ends[0], axes, rows).max() + 1, _rows(ends[1], axes, rows).min() - 1
    labelled = list(plot)
    for row, (line, name) in ((lower, low), (upper, high)):
        if 0 <= row < rows:
            labelled[row] = overlaid(labelled[row], gutter + column, name, line.style)
    return labelled


def _beside(low: int, high: int) -> tuple[int, int]:
    """Return the rows of both names, from the top: those of the values, or two neighbours."""
    return max(low, high + 1), high


def _rows(values: FloatArray, axes: Axes, rows: int) -> IntArray:
    """Return the rows of cells in which values are drawn, from the top."""
    dots = np.rint(np.clip(values / axes.limit, 0.0, 1.0) * (rows * 4 - 1)).astype(np.int64)
    return rows - 1 - dots // 4
