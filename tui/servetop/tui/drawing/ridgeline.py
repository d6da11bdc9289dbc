"""Ridgelines: histograms of several stages below each other on one logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.histogram import LogHistogram, bucket_value
from servetop.tui.drawing.charts import EIGHTHS, with_marks
from servetop.tui.drawing.text_runs import Run

INDENT = 4
"""Cells at the left for the swatches."""


def ridgelines(
    curves: Sequence[LogHistogram],
    swatches: Sequence[Run],
    *,
    window: tuple[float, float],
    shape: tuple[int, int],
    marks: Sequence[float] = (),
) -> list[list[Run]]:
    """`shape` (rows, columns) over `window` (logarithms of seconds); each histogram is scaled to its own peak.

    Each has its swatch at the left of its base line. If there are fewer rows than histograms, the newest are shown.
    """
    rows, columns = shape
    shown = list(zip(curves, swatches, strict=True))[-rows:]
    room = columns - INDENT
    if not shown or room < 1:
        return []
    each = rows // len(shown)
    drawn = [row for curve, swatch in shown for row in _ridgeline(_density(curve, window, room), each, swatch[1])]
    marked = with_marks(drawn, window=window, marks=marks, width=room, style="warn")
    blank: Run = (" " * INDENT, "")
    heads = [blank if (y + 1) % each else _padded(shown[y // each][1]) for y in range(len(marked))]
    return [[head, *row] for head, row in zip(heads, marked, strict=True)]


def _padded(swatch: Run) -> Run:
    return (swatch[0].ljust(INDENT), swatch[1])


def _density(histogram: LogHistogram, window: tuple[float, float], columns: int) -> FloatArray:
    """Share of the fullest column; shape (columns,). Values outside the window count at its edges."""
    if not histogram.buckets.size:
        return np.zeros(columns)
    low, high = window
    at = np.array([math.log(bucket_value(int(bucket))) for bucket in histogram.buckets])
    column = np.clip(((at - low) / (high - low) * columns).astype(int), 0, columns - 1)
    counts = np.bincount(column, weights=histogram.counts, minlength=columns)
    scaled: FloatArray = counts / counts.max()
    return scaled


def _ridgeline(density: FloatArray, height: int, style: str) -> list[list[Run]]:
    """Bars in eighths of a cell, at least one for values above 0; a blank row separates taller ridges."""
    bars = height - 1 if height >= 3 else height
    eighths = np.where(density > 0, np.maximum(np.rint(density * bars * 8), 1), 0)
    levels = [np.clip(eighths - y * 8, 0, 8).astype(int) for y in reversed(range(bars))]
    blank = np.zeros(density.size, dtype=int)
    padded = [blank] * (height - bars) + levels
    return [[("".join(EIGHTHS[level] for level in row), style)] for row in padded]
