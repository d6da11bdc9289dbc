"""The cursor: one instant on the time axis that all charts share; every panel shows the figures of that instant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.tick import TICK_SECONDS
from servetop.tui.drawing.text_runs import Run

MARK = "│"
"""What a chart shows in the cursor's column."""
FAR = 10
"""Bins that a far step of the cursor takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """An instant of the run, seconds."""

    at: float
    follows_mouse: bool = True
    """Until it was put somewhere by a click or a key."""
    latency: float | None = None
    """Seconds: it was put on a cell of the heat map, whose requests are looked for."""

    def moved(self, steps: float, *, window: tuple[float, float], bins: int) -> Cursor:
        """By so many bins of the axis, and kept on it; a cursor that slid off comes back at that edge."""
        start, end = max(window[0], 0.0), window[1]
        step = max(1, math.ceil((window[1] - window[0]) / TICK_SECONDS / bins)) * TICK_SECONDS
        return Cursor(at=min(max(self.at + steps * step, start), end), follows_mouse=False)


def column_of(at: float, window: tuple[float, float], width: int) -> int | None:
    """The cell in which values of that instant are drawn; None outside of the axis."""
    start, end = window
    if not start <= at <= end or end <= start or width < 1:
        return None
    return min(max(math.ceil((at - start) / (end - start) * width - 1e-9) - 1, 0), width - 1)


def time_at_column(column: int, window: tuple[float, float], width: int) -> float | None:
    """The newest instant drawn in that cell; None outside of the chart and before second 0."""
    start, end = window
    at = start + (column + 1) / max(width, 1) * (end - start)
    return min(at, end) if 0 <= column < width and at > 0 else None


def crossed(row: Sequence[Run], column: int | None) -> list[Run]:
    """The row with the cursor's mark in that cell; all characters before it must be one cell wide."""
    result: list[Run] = []
    position = 0
    for text, style in row:
        inside = -1 if column is None else column - position
        if 0 <= inside < len(text):
            result += [(text[:inside], style), (MARK, "cursor"), (text[inside + 1 :], style)]
        else:
            result.append((text, style))
        position += len(text)
    return [run for run in result if run[0]]
