"""Text from outside (engine logs, model names, labels, notes) made fit for a terminal.

What an engine prints must never move the cursor, change colours, reorder the line or be read as markup.
"""

from __future__ import annotations

import re
import unicodedata

from rich.cells import cell_len, set_cell_size

_ESCAPE_SEQUENCE = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC strings
    r"|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]"  # CSI (also in its one-byte form) and two-character escapes
)
_REFUSED_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_LONGEST = 2000


def printable(text: str) -> str:
    """One line without escape sequences, control, bidirectional and unassigned characters; tabs become spaces.

    Of a line that carriage returns overwrote (progress bars) only the last state is kept.
    """
    line = text[:_LONGEST].rstrip("\r\n").rsplit("\r", 1)[-1]
    if line.isascii() and line.isprintable():
        return line
    line = _ESCAPE_SEQUENCE.sub("", line).replace("\t", "    ").replace("\n", " ")
    return "".join(each for each in line if unicodedata.category(each) not in _REFUSED_CATEGORIES)


def shortened(text: str, width: int) -> str:
    """At most `width` terminal cells of printable text; what is cut off ends in `…`."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""
