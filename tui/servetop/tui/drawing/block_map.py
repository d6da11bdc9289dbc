"""A map of the KV blocks: one cell per n blocks, filled from the top left.

Engines report how many blocks are in use, not which ones: the map shows amounts, not positions.
"""

from __future__ import annotations

import math

from servetop.tui.drawing.text_runs import Run

_PARTLY = "⣀⣄⣤⣦⣶⣷"
"""Cells with two to seven eighths of their blocks in use."""
_STEPS = (1, 2, 5, 10)


def blocks_per_cell(total: float, *, cells: int) -> int:
    """Return the smallest 1, 2 or 5 times a power of ten for which `total` blocks fit into `cells` cells."""
    needed = max(math.ceil(total / max(cells, 1)), 1)
    scale = int(10 ** math.floor(math.log10(needed)))
    return next(step * scale for step in _STEPS if step * scale >= needed)


def block_map(used: float, total: float, *, width: int, height: int, style: str) -> list[list[Run]]:
    """At most `height` rows of `width` cells; a partly used cell is partly filled, free ones are dots."""
    each = blocks_per_cell(total, cells=width * height)
    cells = math.ceil(total / each)
    full, rest = divmod(min(used, total), each)
    text = "⣿" * int(full)
    if rest:
        text += _PARTLY[min(max(round(rest / each * 8), 2), 7) - 2]
    filled = len(text)
    rows: list[list[Run]] = []
    for start in range(0, cells, width):
        length = min(width, cells - start)
        solid = min(max(filled - start, 0), length)
        rows.append([(text[start : start + solid], style), ("·" * (length - solid), "faint")])
    return rows
