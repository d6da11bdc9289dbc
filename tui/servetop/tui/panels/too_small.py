"""What is shown instead of a mess."""

from __future__ import annotations

from textual.widget import Widget

from servetop.tui.drawing.text_runs import Lines, placard

NEEDED = (60, 16)
"""Columns and rows below which the dashboard is not drawn."""


class TooSmall(Widget):
    """Says how large the terminal is and how large it must be."""

    def render(self) -> Lines:
        """In the middle of whatever room there is."""
        width, height = self.size
        columns, rows = NEEDED
        text = f"terminal too small: {width}×{height}, servetop needs {columns}×{rows}"
        return Lines(placard(text, width=width, height=height, style="warn"))
