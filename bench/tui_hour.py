"""Measures the dashboard on a long recording: `python bench/tui_hour.py [MINUTES]` (make bench-tui; default an hour).

A run of 280 requests per second with overloads, 1,000,000 requests in an hour: time to open it, with and without
judging it; to judge it; to show another screen; to seek, and to refresh each screen (processor time) while the queue is
longest; and the memory of the dashboard's process.
"""

from __future__ import annotations

import asyncio
import gc
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tui import head, key_to_screen, row, verdict

REQUESTS_PER_TICK = 70
SIZES = {(160, 48): 0.033, (220, 60): 0.05}
"""Columns and rows, and the limit of a refresh in seconds."""
OPENINGS = 7
SCREENS: Mapping[str, str] = {
    "overview": "1", "requests": "2", "distributions": "3", "sweep": "4", "log": "5", "engine": "7", "batch film": "8",
}  # fmt: skip
TIMES = 40
"""Seeks, and refreshes, of each screen."""


async def opened(path: Path, *, judging: bool = True) -> None:
    """Open the recording as `servetop replay` does, and print the time, without and with imports."""
    began = time.perf_counter()
    gc.disable()
    from servetop.core.clock import ManualClock
    from servetop.recordings.read.reader import RecordingReader
    from servetop.tui.app import DashboardApp
    from servetop.tui.state.judged_run import JudgedRun

    if not judging:
        JudgedRun.update = lambda *_, **__: None  # type: ignore[method-assign]
    imported = time.perf_counter()
    app = DashboardApp(RecordingReader.open(path), clock=ManualClock())
    async with app.run_test(size=next(iter(SIZES))):
        now = time.perf_counter()
        print(now - imported, now - began)


async def judged(path: Path) -> None:
    """Judge the recording as the dashboard does, bit by bit, and print the processor time of all and of each part."""
    from servetop.core.clock import ManualClock
    from servetop.recordings.read.reader import RecordingReader
    from servetop.tui.options import DashboardOptions
    from servetop.tui.run_viewer import RunViewer
    from servetop.tui.state.judged_run import JudgedRun

    viewer = RunViewer(DashboardOptions(), ManualClock(), redraw=lambda: None, call_later=lambda *_: None)
    viewer.open(RecordingReader.open(path))
    run = viewer.run
    while (known := run.judged.story(run.record)) is None:
        viewer.read_updates()

    def parts() -> Iterator[float]:
        again, found = JudgedRun(streamed=True), None
        while found is None:
            began = time.process_time()
            again.update(run.history, run.header.engine, stages=run.stages)
            found = again.story(replace(run.record, episodes=again.episodes))
            yield time.process_time() - began
        if found != known:
            raise RuntimeError("the story depends on how the ticks are grouped")

    times = [list(parts()) for _ in range(OPENINGS)]
    print(row("judging it (CPU)", [sum(each) for each in times], 2.0))
    print(row("  between two frames at most (CPU)", [max(each) for each in times], 0.1))


async def shown(path: Path, columns: int, rows: int) -> None:
    """Seek and refresh in the open recording, and print the time of each."""
    from servetop.core.clock import ManualClock
    from servetop.recordings.read.reader import RecordingReader
    from servetop.tui.app import DashboardApp

    app = DashboardApp(RecordingReader.open(path), clock=ManualClock())
    gc.freeze()
    async with app.run_test(size=(columns, rows)) as pilot:
        while not app.viewer.run.judged.complete:
            app.poll()
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
            print(row(f"seek, {name}", [await drawn(places.uniform(0, edge)) for _ in range(TIMES)], 0.1))
            for _ in range(2):
                await drawn(edge - 70)
            refreshes = [await drawn(edge - 70 + number / 4) for number in range(TIMES)]
            print(row(f"refresh, {name}", refreshes, SIZES[columns, rows]), flush=True)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'most memory':<44} {used:8.0f} MB            ≤ 250 MB{verdict(used, 250)}")


def openings(path: Path) -> None:
    """Open the recording several times, each in its own process, in turn with and without judging it."""
    argv = [sys.executable, __file__]
    printed = [
        [subprocess.run([*argv, how, str(path)], check=True, capture_output=True, text=True).stdout
         for how in ("--open", "--open-unjudged")]
        for _ in range(OPENINGS)
    ]  # fmt: skip
    judged_too, imported = zip(*(map(float, line.split()) for line, _ in printed), strict=True)
    alone = [float(line.split()[0]) for _, line in printed]
    print(row("opening it, first frame drawn", judged_too, 1.0))
    print(row("  without judging", alone, None))
    delay = statistics.median(judged_too) - statistics.median(alone)
    print(f"{'  delayed by judging':<44} {delay * 1e3:8.1f} {'':>8}   ≤ 50 ms{verdict(delay, 0.05)}")
    print(row("  with the imports of the dashboard", imported, None), flush=True)


def measure(path: Path) -> None:
    """Open, judge and show the recording in separate processes."""
    print(head("dashboard, 160×48"), flush=True)
    openings(path)
    subprocess.run([sys.executable, __file__, "--judge", str(path)], check=True)
    keys = "".join(SCREENS.values())
    print(row("key to screen", key_to_screen(path, keys=keys, presses=5 * len(keys)), 0.1), flush=True)
    for columns, rows in SIZES:
        print(head(f"dashboard, {columns}×{rows} (CPU)"), flush=True)
        subprocess.run([sys.executable, __file__, "--show", str(path), str(columns), str(rows)], check=True)


def main() -> None:
    """Write the recording, then measure; the first argument of the separate processes says what they do."""
    match sys.argv[1:]:
        case ["--open", path]:
            asyncio.run(opened(Path(path)))
        case ["--open-unjudged", path]:
            asyncio.run(opened(Path(path), judging=False))
        case ["--judge", path]:
            asyncio.run(judged(Path(path)))
        case ["--show", path, columns, rows]:
            asyncio.run(shown(Path(path), int(columns), int(rows)))
        case arguments:
            from busy_hour import write_busy

            minutes = float(arguments[0]) if arguments else 60.0
            with tempfile.TemporaryDirectory() as folder:
                path, ticks = Path(folder) / "long.servetop", round(minutes * 240)
                write_busy(path, ticks, requests=REQUESTS_PER_TICK)
                size = path.stat().st_size / 1e6
                print(f"{ticks * REQUESTS_PER_TICK:,} requests in {minutes:g} min, {size:.0f} MB")
                measure(path)


if __name__ == "__main__":
    main()
