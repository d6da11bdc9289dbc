"""Rows of a log: time, mark, text and source of each entry, cut at the width or wrapped between words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len, chop_cells

from servetop.core.events import Severity
from servetop.core.text import formats
from servetop.tui.drawing.text_runs import Run, TextRow, fitted

SEVERITY_STYLES = {Severity.INFO: "", Severity.WARNING: "warn", Severity.ERROR: "bad"}
"""The style of an entry by its severity."""
_MARKS = {Severity.INFO: " ", Severity.WARNING: "!", Severity.ERROR: "✖"}
"""The mark of an engine's line, which tells severities apart without colour."""
_WORDS = re.compile(r"\s*\S+|\s+$")
_PART = 8
"""Cells."""
_LEAST_WRAPPED = 20
"""Cells of text beside the time below which nothing is wrapped."""


def head(at: float, severity: Severity, symbol: str, *, chosen: bool = False) -> list[Run]:
    """Return the time and the mark: the symbol of servetop's own entries, else that of the severity."""
    mark: Run = ("▸", "cursor") if chosen else (" ", "")
    style = SEVERITY_STYLES[severity] or ("key" if symbol else "")
    return [mark, (f"{formats.clock_time(at)[3:]} ", "faint"), (f"{symbol or _MARKS[severity]} ", style)]


def wrapped(start: Sequence[Run], text: Sequence[Run], width: int) -> list[TextRow]:
    """`text` between words in as many rows as it needs, indented as wide as `start`; very narrow rows are cut."""
    indent = sum(cell_len(run) for run, _ in start)
    room = width - indent
    if room < _LEAST_WRAPPED:
        return [fitted([*start, *text], width)]
    rows: list[list[Run]] = [[]]
    used = 0
    for piece, style in _pieces(text, room):
        if used and used + cell_len(piece.rstrip()) > room:
            rows.append([])
            used, piece = 0, piece.lstrip()
        rows[-1].append((piece, style))
        used += cell_len(piece)
    blank: Run = (" " * indent, "")
    return [fitted([*(start if number == 0 else [blank]), *row], width) for number, row in enumerate(rows)]


def _pieces(text: Sequence[Run], room: int) -> list[Run]:
    """Words with the blanks before them; words longer than `room` cells in short parts, which fill the rows."""
    words = [(word, style) for run, style in text for word in _WORDS.findall(run)]
    return [
        (part, style)
        for word, style in words
        for part in (chop_cells(word, _PART) if cell_len(word) > room else [word])
    ]
