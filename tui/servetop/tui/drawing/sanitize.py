"""Text in the cells of a terminal."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from servetop.core.text.sanitize import sanitize_line

_COUNTED_DIFFERENTLY = dict.fromkeys(
    [0x200D, 0xFE0E, 0xFE0F, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080)]  # joiner, variants, skin, tags
)


def in_cells(text: str) -> str:
    """Sanitized text that takes the same cells on every terminal: emoji of several parts fall into these.

    Terminals do not agree on whether a woman, a joiner and a laptop are one sign or two; a row that one of them takes
    for longer than it is runs over the rows beside and below it.
    """
    if text.isascii():
        return sanitize_line(text)
    return sanitize_line(text).translate(_COUNTED_DIFFERENTLY)


def shortened(text: str, width: int) -> str:
    """At most `width` terminal cells of printable text; what is cut off ends in `…`."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""
