"""The KV blocks as a map: one cell for every n blocks, filled from the top left as an engine hands them out.

An engine tells how many blocks are in use, not which: the map shows amounts, not places.
"""

from __future__ import annotations

import math

from servetop.tui.drawing.text_runs import Run

_PARTLY = "⣀⣄⣤⣦⣶⣷"
"""A cell with two to seven eighths of its blocks in use."""
_STEPS = (1, 2, 5, 10)


def blocks_per_cell(total: float, *, cells: int) -> int:
    """The smallest 1, 2 or 5 times a power of ten with which `total` blocks fit into so many cells."""
    needed = max(math.ceil(total / max(cells, 1)), 1)
    scale = int(10 ** math.floor(math.log10(needed)))
    return next(step * scale for step in _STEPS if step * scale >= needed)


def block_map(used: float, total: float, *, width: int, height: int, style: str) -> list[list[Run]]:
    """At most `height` rows of `width` cells; a cell that is partly in use is partly filled, free ones are dots."""
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
