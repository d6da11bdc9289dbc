"""Writes the README's picture of the dashboard: `python -m tests.tui.picture docs/dashboard.svg` (make picture).

It shows the end of the shipped recording `sample`. `dashboard-animated.svg`, beside it, shows several instants.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from servetop.core.clock import ManualClock
from servetop.recordings.library.folder_store import FolderStore
from servetop.recordings.library.samples import sample_path
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.screen_picture import portable
from tests.tui.animation import animated

SIZE = (160, 48)
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


def main(path: Path) -> None:
    """Write the picture and the animation."""
    store = FolderStore()
    try:
        app = DashboardApp(store.open(sample_path("sample")), clock=ManualClock())
        drawn = [portable(svg) for svg in asyncio.run(screens(app, INSTANTS))]
    finally:
        store.close()
    path.write_text(drawn[-1] + "\n", encoding="utf-8")
    path.with_stem(f"{path.stem}-animated").write_text(animated(drawn) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/dashboard.svg"))
