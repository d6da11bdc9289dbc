"""The cursor: a time on the axis that all charts share; every panel shows its values at that time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.tick import TICK_SECONDS
from servetop.tui.drawing.text_runs import Run, overlaid

MARK = "│"
"""The glyph in the cursor's column."""
FAR = 10
"""Bins of a large step of the cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A time of the run, seconds."""

    at: float
    follows_mouse: bool = True
    """Until a click or a key sets it."""
    latency: float | None = None
    """Latency in seconds of the heat map cell that it was set on, whose requests are selected."""

    def moved(self, steps: float, *, window: tuple[float, float], bins: int, newest: float = math.inf) -> Cursor:
        """Moves by bins of the axis, up to the `newest` data; a cursor outside the window returns at that edge."""
        start, end = max(window[0], 0.0), min(window[1], newest)
        step = max(1, math.ceil((window[1] - window[0]) / TICK_SECONDS / bins)) * TICK_SECONDS
        return Cursor(at=min(max(self.at + steps * step, start), end), follows_mouse=False)


def column_of(at: float, window: tuple[float, float], width: int) -> int | None:
    """Return the cell that shows values of that time; None outside of the axis."""
    start, end = window
    if not start <= at <= end or end <= start or width < 1:
        return None
    return min(max(math.ceil((at - start) / (end - start) * width - 1e-9) - 1, 0), width - 1)


def time_at_column(column: int, window: tuple[float, float], width: int) -> float | None:
    """Return the latest time shown in that cell; None outside of the chart and before second 0."""
    start, end = window
    at = start + (column + 1) / max(width, 1) * (end - start)
    return min(at, end) if 0 <= column < width and at > 0 else None


def crossed(row: Sequence[Run], column: int | None) -> list[Run]:
    """Return the row with the cursor's mark in that cell; all characters before it must be one cell wide."""
    return overlaid(row, -1 if column is None else column, MARK, "cursor")
