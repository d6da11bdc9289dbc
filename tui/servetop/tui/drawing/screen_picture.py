"""Makes the picture of a screen that Textual writes as SVG readable by any viewer, without a network."""

from __future__ import annotations

import html
import re
import unicodedata

from rich.cells import cell_len

_CELL = 12.2
"""Width of a cell in the SVG that Textual writes."""


def portable(svg: str) -> str:
    """Return the same picture without a font from the network; each word, dot and bar is at its own cell."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\bterminal-\d+-", "dashboard-", svg)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")
    return unicodedata.normalize("NFC", re.sub(r"<text([^>]*)>(.*?)</text>", _placed, svg, flags=re.DOTALL))


def _placed(match: re.Match[str]) -> str:
    attributes, text = match.group(1), html.unescape(match.group(2))
    start = re.search(r' x="([\d.]+)"', attributes)
    if start is None or " textLength=" not in attributes:
        return match.group(0)
    rest = re.sub(r' (x|textLength|clip-path)="[^"]+"', "", attributes)
    moved_to = []
    for piece in re.finditer(r"[^\s\u2500-\u28ff]+|[\u2500-\u28ff]", text.replace("\xa0", " ")):
        x = float(start.group(1)) + _CELL * cell_len(text[: piece.start()])
        moved_to.append(f'<text{rest} x="{x:g}">{html.escape(piece.group())}</text>')
    return "".join(moved_to)
