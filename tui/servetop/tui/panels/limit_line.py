"""An objective in a chart: a line at the limit, with its value on the vertical axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import GUTTER, Axes
from servetop.tui.drawing.text_runs import Run, TextRow

STYLE = "warn"
"""Style of an objective's line and of its label."""


def limit_trace(axes: Axes, limit: float | None) -> list[ChartLine]:
    """Return a dotted line at a limit over the whole time axis; none without a limit, or if it is beyond the chart."""
    if limit is None or limit > axes.limit:
        return []
    return [ChartLine(times=np.array(axes.window), values=np.full(2, limit), style=STYLE, dash="dotted")]


def limit_row(axes: Axes, limit: float | None, rows: int) -> int | None:
    """Return the row of a limit in a chart of `rows` rows, from the top; None if it is not in the chart."""
    if limit is None or limit > axes.limit or rows < 1:
        return None
    return rows - 1 - round(limit / axes.limit * (rows * 4 - 1)) // 4


def with_limit_label(plot: Sequence[TextRow], axes: Axes, limit: float | None, *, width: int) -> list[TextRow]:
    """The rows of `chart` with the limit in place of what its row has on the vertical axis; the lowest row keeps 0."""
    rows = len(plot) - (1 if len(plot) >= 4 else 0)
    at = limit_row(axes, limit, rows)
    if limit is None or at is None or at == rows - 1 or width < 2 * GUTTER:
        return list(plot)
    return [with_axis_label(row, axes.label(limit)) if y == at else row for y, row in enumerate(plot)]


def with_axis_label(row: TextRow, label: str) -> list[Run]:
    """Return a row of a chart with this label on its vertical axis."""
    rest, cells = list(row), 0
    while rest and cells < GUTTER:
        cells += len(rest.pop(0)[0])
    return [(f"{label:>{GUTTER - 1}}┤", STYLE), *rest]
