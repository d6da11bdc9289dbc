"""Writes the README's picture of the dashboard: `python -m tests.tui.picture docs/dashboard.svg` (make picture).

It shows the end of the shipped recording `sample`. `dashboard-animated.svg`, beside it, shows several instants.
"""

from __future__ import annotations

import asyncio
import html
import re
import sys
import unicodedata
from pathlib import Path

from rich.cells import cell_len

from servetop.core.clock import ManualClock
from servetop.recordings.library.folder_store import FolderStore
from servetop.recordings.library.samples import sample_path
from servetop.tui.app import DashboardApp
from tests.tui.animation import animated

SIZE = (160, 48)
CELL = 12.2
"""Width of a cell in the SVG that Textual writes."""


INSTANTS = (10.0, 22.0, 32.0, 40.0, 48.0, 56.0, 64.0, 72.0, 80.0, 95.0)
"""Seconds of the run that the animation shows before its end."""


async def screens(app: DashboardApp, instants: tuple[float, ...]) -> list[str]:
    """The screen at each instant and at the end of the run, as Textual draws it."""
    drawn = []
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for at in instants:
            app.controls.playback.go_to(at)
            app.redraw()
            await pilot.pause()
            drawn.append(app.export_screenshot())
        await pilot.press("end")
        await pilot.pause()
        drawn.append(app.export_screenshot())
    return drawn


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
    """Write the picture and the animation."""
    store = FolderStore()
    try:
        app = DashboardApp(store.open(sample_path("sample")), clock=ManualClock())
        drawn = [unicodedata.normalize("NFC", portable(svg)) for svg in asyncio.run(screens(app, INSTANTS))]
    finally:
        store.close()
    path.write_text(drawn[-1] + "\n", encoding="utf-8")
    path.with_stem(f"{path.stem}-animated").write_text(animated(drawn) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/dashboard.svg"))
