"""Writes the README's picture of the dashboard: `python -m tests.tui.picture docs/dashboard.svg` (make picture)."""

from __future__ import annotations

import asyncio
import html
import re
import sys
import unicodedata
from pathlib import Path

from rich.cells import cell_len

from servetop.core.clock import ManualClock
from servetop.tui.app import DashboardApp
from tests.tui import canned

SIZE = (160, 48)
CELL = 12.2
"""Width of a cell in the SVG that Textual writes."""


async def svg_of(app: DashboardApp) -> str:
    """The first frame, as Textual draws it."""
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        return app.export_screenshot()


def portable(svg: str) -> str:
    """The same picture for any viewer: no font from the network; each word, dot and bar is at its own cell."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\bterminal-\d+-", "dashboard-", svg)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")
    return re.sub(r"<text([^>]*)>(.*?)</text>", _placed, svg, flags=re.DOTALL)


def _placed(match: re.Match[str]) -> str:
    attributes, text = match.group(1), html.unescape(match.group(2))
    start = re.search(r' x="([\d.]+)"', attributes)
    if start is None or " textLength=" not in attributes:
        return match.group(0)
    rest = re.sub(r' (x|textLength|clip-path)="[^"]+"', "", attributes)
    moved_to = []
    for piece in re.finditer(r"[^\s\u2500-\u28ff]+|[\u2500-\u28ff]", text.replace("\xa0", " ")):
        x = float(start.group(1)) + CELL * cell_len(text[: piece.start()])
        moved_to.append(f'<text{rest} x="{x:g}">{html.escape(piece.group())}</text>')
    return "".join(moved_to)


def main(path: Path) -> None:
    """The canned run, live, at its limits."""
    svg = asyncio.run(svg_of(DashboardApp(canned.growing(), clock=ManualClock())))
    path.write_text(unicodedata.normalize("NFC", portable(svg)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/dashboard.svg"))
