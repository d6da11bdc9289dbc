"""Ridgelines: histograms of several stages below each other on one logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from rich.cells import cell_len

from servetop.core.arrays import FloatArray
from servetop.core.histogram import MAX_BUCKET, LogHistogram, bucket_value
from servetop.tui.drawing.charts import EIGHTHS, with_marks
from servetop.tui.drawing.text_runs import Run, shortened


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ridge:
    """One histogram and its name."""

    histogram: LogHistogram
    style: str
    name: str
    short: str
    """The name at the left of a low ridge."""


_LABEL_ROWS = 3
"""Rows of a ridge from which on its name has a row of its own."""

_SOLID = "\N{NO-BREAK SPACE}"
"""Stands for the blanks of a name while marks are drawn into blank cells."""


def indent_of(ridges: Sequence[Ridge], rows: int) -> int:
    """Cells for the names at the left: none if each ridge has a row for its name."""
    if not ridges or rows // len(ridges) >= _LABEL_ROWS:
        return 0
    return max(cell_len(ridge.short) for ridge in ridges) + 1


def ridgelines(
    ridges: Sequence[Ridge], *, window: tuple[float, float], shape: tuple[int, int], marks: Sequence[float] = ()
) -> list[list[Run]]:
    """`shape` (rows, columns) over `window` (logarithms of seconds); each histogram is scaled to its own peak.

    Its name is above it, or at its left. If there are fewer rows than histograms, the newest are shown.
    """
    rows, columns = shape
    shown = ridges[-rows:] if rows > 0 else []
    indent = indent_of(shown, rows)
    room = columns - indent
    if not shown or room < 1:
        return []
    each = rows // len(shown)
    drawn: list[list[Run]] = []
    for ridge in shown:
        bars = _ridgeline(_density(ridge.histogram, window, room), each if indent else each - 1, ridge.style)
        name = shortened(ridge.name, room).replace(" ", _SOLID)
        label: list[Run] = [(name, ridge.style), (" " * (room - cell_len(name)), "")]
        drawn += bars if indent else [label, *bars]
    marked = with_marks(drawn, window=window, marks=marks, width=room, style="warn")
    if not indent:
        return [[(text.replace(_SOLID, " "), style) for text, style in row] for row in marked]
    heads = [("" if (y + 1) % each else shown[y // each].short, shown[y // each].style) for y in range(len(marked))]
    return [[(f"{text:<{indent}}", style), *row] for (text, style), row in zip(heads, marked, strict=True)]


@cache
def _logarithms() -> FloatArray:
    """Return the logarithm of the seconds that represent each bucket."""
    return np.array([math.log(bucket_value(bucket)) for bucket in range(MAX_BUCKET + 1)])


def _density(histogram: LogHistogram, window: tuple[float, float], columns: int) -> FloatArray:
    """Share of the fullest column; shape (columns,). Values outside the window count at its edges.

    A bucket may be wider than a column: its count is spread evenly over its width, else columns in between are empty.
    """
    if not histogram.buckets.size:
        return np.zeros(columns)
    logarithms = _logarithms()
    half = (logarithms[1] - logarithms[0]) / 2
    at, total = logarithms[histogram.buckets], np.cumsum(histogram.counts, dtype=float)
    knots = np.column_stack((at - half, at + half)).ravel()
    below = np.column_stack((total - histogram.counts, total)).ravel()
    edges = np.interp(np.linspace(*window, columns + 1), knots, below)
    edges[0], edges[-1] = 0.0, total[-1]
    counts = np.diff(edges)
    scaled: FloatArray = counts / counts.max()
    return scaled


def _ridgeline(density: FloatArray, height: int, style: str) -> list[list[Run]]:
    """Return bars in eighths of a cell, at least one for values above 0."""
    eighths = np.where(density > 0, np.maximum(np.rint(density * height * 8), 1), 0)
    levels = [np.clip(eighths - y * 8, 0, 8).astype(int) for y in reversed(range(height))]
    return [[("".join(EIGHTHS[level] for level in row), style)] for row in levels]
