"""Text cut to the cells of a terminal."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


def shortened(text: str, width: int) -> str:
    """At most `width` terminal cells of printable text; what is cut off ends in `…`."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""
