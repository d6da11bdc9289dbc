"""Measures the dashboard on a long recording: `python bench/tui_hour.py [MINUTES]` (make bench-tui; default an hour).

A run of 280 requests per second, 1,000,000 in an hour: time to open it, to seek, to refresh each screen at its end
(processor time), and the memory of the dashboard's process.
"""

from __future__ import annotations

import asyncio
import gc
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

REQUESTS_PER_TICK = 70
SIZE = (160, 48)
OPENINGS = 7
SCREENS: Mapping[str, str] = {"live": "1", "requests": "2", "distributions": "3", "sweep": "4", "log": "5"}


async def opened(path: Path) -> None:
    """Open the recording as `servetop replay` does, and print the time, without and with imports."""
    began = time.perf_counter()
    gc.disable()
    from servetop.core.clock import ManualClock
    from servetop.recordings.read.reader import RecordingReader
    from servetop.tui.app import DashboardApp

    imported = time.perf_counter()
    app = DashboardApp(RecordingReader.open(path), clock=ManualClock())
    async with app.run_test(size=SIZE):
        now = time.perf_counter()
        print(now - imported, now - began)


async def shown(path: Path) -> None:
    """Seek and refresh in the open recording, and print the time of each."""
    from servetop.core.clock import ManualClock
    from servetop.recordings.read.reader import RecordingReader
    from servetop.tui.app import DashboardApp

    app = DashboardApp(RecordingReader.open(path), clock=ManualClock())
    gc.freeze()
    async with app.run_test(size=SIZE) as pilot:
        edge = app.viewer.run.edge

        async def drawn(at: float) -> float:
            began = time.process_time()
            app.controls.playback.go_to(at)
            await pilot.pause()
            app.screen._compositor.render_update(full=True)
            return time.process_time() - began

        places = random.Random(1)
        for name, key in SCREENS.items():
            await pilot.press(key)
            row(f"seek, {name} screen", [await drawn(places.uniform(0, edge)) for _ in range(40)], 0.1)
            refreshes = [await drawn(edge - 10 + number / 4) for number in range(40)]
            row(f"refresh at the end, {name} screen", refreshes, 0.033)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'most memory':<44} {used:8.0f} MB            ≤ 250 MB")


def row(name: str, seconds: list[float], limit: float | None) -> None:
    """Median and 95th percentile."""
    p50, p95 = np.percentile(seconds, [50, 95]) * 1e3
    print(f"{name:<44} {p50:8.1f} {p95:8.1f}" + (f"   ≤ {limit * 1e3:g} ms" if limit else ""), flush=True)


def openings(path: Path) -> None:
    """Open the recording several times, each in its own process."""
    argv = [sys.executable, __file__, "--open", str(path)]
    printed = [subprocess.run(argv, check=True, capture_output=True, text=True).stdout for _ in range(OPENINGS)]
    alone, imported = zip(*(map(float, line.split()) for line in printed), strict=True)
    row("opening it, first frame drawn", list(alone), 1.0)
    row("  with the imports of the dashboard", list(imported), None)


def main() -> None:
    """Write the recording, then open and show it in separate processes."""
    played = {"--open": opened, "--show": shown}.get("".join(sys.argv[1:2]))
    if played is not None:
        asyncio.run(played(Path(sys.argv[2])))
        return
    from recordings import write

    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    with tempfile.TemporaryDirectory() as folder:
        path, ticks = Path(folder) / "long.servetop", round(minutes * 240)
        write(path, ticks, requests=REQUESTS_PER_TICK)
        size = path.stat().st_size / 1e6
        print(f"{ticks * REQUESTS_PER_TICK:,} requests in {minutes:g} min, {size:.0f} MB")
        print(f"{'dashboard, 160×48':<44} {'p50 ms':>8} {'p95 ms':>8}   limit", flush=True)
        openings(path)
        subprocess.run([sys.executable, __file__, "--show", str(path)], check=True)


if __name__ == "__main__":
    main()
