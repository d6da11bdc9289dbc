"""The baseline in panels: differences in titles, and its line over areas where there is no room for a chart."""

from __future__ import annotations

import math

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.text import formats
from servetop.tui.drawing.braille import ChartLine, parted, raster
from servetop.tui.drawing.charts import Axes, Bars, block_bars, with_cursor
from servetop.tui.drawing.text_runs import Run, TextRow, shortened
from servetop.tui.state.baseline import STYLE, Baseline

_DELTA = 8
"""Cells of a difference with its sign: the same for all values, so that nothing moves."""
_LINE_ROWS = 2
"""Rows from which two lines are distinguishable."""
_NAME = 12
"""Cells of the baseline's name in legends."""


def delta(now: float | None, then: float | None) -> TextRow:
    """`Δ −3.1 %`: by how much a value differs from the baseline's; `–` if either is unknown."""
    text = formats.relative(math.nan if now is None else now, math.nan if then is None else then)
    return [("Δ", STYLE), (f"{text:>{_DELTA}}", "strong")]


def named(baseline: Baseline | None) -> list[TextRow]:
    """Return the swatch and the name of the baseline as a part of a legend; no part without one."""
    return [] if baseline is None else [[baseline.swatch, (f" {shortened(baseline.name, _NAME)}", "muted")]]


def bars_or_lines(
    bars: Bars, axes: Axes, before: FloatArray | None, *, baseline: Baseline | None, width: int, height: int
) -> list[list[Run]]:
    """Bars without axes; with a baseline and two rows a line of the same values beside that of its values `before`."""
    if baseline is None or before is None or height < _LINE_ROWS:
        return block_bars(bars, axes, width=width, height=height)
    line = ChartLine(times=bars.times, values=bars.values, style=bars.style)
    alert = np.zeros(bars.values.shape, dtype=np.bool_) if bars.alert is None else bars.alert
    lines = [*baseline.lines(before, beside=line), *parted(line, alert, style=bars.alert_style)]
    drawn = raster(lines, width=width, height=height, window=axes.window, limit=axes.limit)
    return with_cursor(drawn, axes, width)
