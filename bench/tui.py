"""Measures the cost of the dashboard: `python bench/tui.py` from the repository's root (make bench).

Time to first frame, key to screen, whole-screen refresh at 160×48 and 220×60, processor use at 4 Hz over 20 s, and
terminal output during that time, for a canned run.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("cli", "core", "engines", "loadgen", "recordings", "tui")
sys.path[:0] = [str(ROOT), *(str(ROOT / part) for part in PARTS)]
SIZE, LARGE = (160, 48), (220, 60)
KEY_SECONDS = 0.4
"""After a key, the screen is drawn when nothing has followed for so long."""
GOLDEN = ROOT / "tests" / "golden" / "whitepaper.servetop"
START = """
import os, pathlib, sys, time
began = time.perf_counter() - (time.time() - float(os.environ["BENCH_BEGAN"]))
from servetop.tui.app import DashboardApp
import pickle
run = pickle.loads(pathlib.Path(os.environ["BENCH_RUN"]).read_bytes())
import asyncio
async def first_frame():
    async with DashboardApp(run).run_test(size=({width}, {height})):
        print(time.perf_counter() - began)
asyncio.run(first_frame())
"""


def start_to_first_frame(scratch: Path, times: int = 7) -> list[float]:
    """Seconds from the start of a Python process to the first complete frame, imports included."""
    import pickle

    from tests.tui import canned

    (scratch / "run.pickle").write_bytes(pickle.dumps(canned.finished()))
    paths = os.pathsep.join(sys.path)
    taken = []
    for _ in range(times):
        environment = dict(
            os.environ, PYTHONPATH=paths, BENCH_RUN=str(scratch / "run.pickle"), BENCH_BEGAN=str(time.time())
        )
        code = START.format(width=SIZE[0], height=SIZE[1])
        answer = subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
        )
        taken.append(float(answer.stdout))
    return taken


async def refreshes(size: tuple[int, int] = SIZE, times: int = 100) -> tuple[list[float], list[float]]:
    """Seconds of processor time for a redraw of all panels, and for the statistics alone."""
    from servetop.core.clock import ManualClock
    from servetop.tui.app import DashboardApp
    from tests.tui import canned

    run = canned.growing(60.0)
    app = DashboardApp(run, clock=ManualClock())
    whole, statistics_alone = [], []
    gc.freeze()  # as run_dashboard does
    async with app.run_test(size=size) as pilot:
        for number in range(times):
            run.now = 60.0 + 0.25 * number
            began = time.process_time()
            app.poll()
            await pilot.pause()
            app.screen._compositor.render_update(full=True)
            whole.append(time.process_time() - began)
            began = time.process_time()
            app.viewer.run.at(app.viewer.view, live=True)
            statistics_alone.append(time.process_time() - began)
    return whole, statistics_alone


FOLLOWED = """
import time
from servetop.tui.app import run_dashboard
from tests.tui import canned
class Growing(canned.CannedRun):
    def poll(self, *, most_ticks=None):
        self.now = 90.0 + time.perf_counter() - began
        return super().poll(most_ticks=most_ticks)
began = time.perf_counter()
run_dashboard(Growing(ticks=canned.ticks(), facts=canned.SIM, stages=canned.stage_changes(), notes=canned.NOTES,
                      log_lines=canned.boot_log(), now=90.0, live=True))
"""


def followed(seconds: float) -> tuple[float, float]:
    """Follow a live run in a pseudo-terminal; return the fraction of one core used, and the bytes/s written."""
    from whole import terminal

    program = (sys.executable, "-c", FOLLOWED)
    with terminal(program=program, environment={"PYTHONPATH": os.pathsep.join(sys.path)}) as screen:
        screen.drain(3.0)  # start, first frames
        process = psutil.Process(screen.process.pid)
        before, began = process.cpu_times(), time.perf_counter()
        drawn = screen.drain(seconds)
        after, took = process.cpu_times(), time.perf_counter() - began
    return (after.user + after.system - before.user - before.system) / took, drawn / took


def key_to_screen(path: Path = GOLDEN, *, keys: str = "t", presses: int = 40) -> list[float]:
    """Seconds from a key in a pseudo-terminal to the last byte drawn, on a recording that nothing else redraws.

    `keys` are pressed in turn; one that draws nothing, such as that of the screen shown, does not count.
    """
    from whole import terminal

    took = []
    with terminal("replay", str(path)) as screen:
        screen.drain(3.0)  # start, first frames
        while screen.read(1.0):  # judging it
            pass
        for number in range(presses):
            began = time.perf_counter()
            screen.press(keys[number % len(keys)].encode())
            drawn = 0.0
            while screen.read(KEY_SECONDS):
                drawn = time.perf_counter()
            if drawn:
                took.append(drawn - began)
    return took


def row(name: str, seconds: Sequence[float], limit: float | None) -> str:
    """Median and 95th percentile in milliseconds, and whether the latter is within the limit."""
    p50, p95 = np.percentile(seconds, [50, 95])
    return f"{name:<44} {p50 * 1e3:8.1f} {p95 * 1e3:8.1f}" + (
        "" if limit is None else f"   ≤ {limit * 1e3:g} ms{verdict(p95, limit)}"
    )


def verdict(value: float, limit: float) -> str:
    """Whether a value is within its limit."""
    return "   ok" if value <= limit else "   MISSED"


def head(title: str) -> str:
    """The head of a table whose limits are for the 95th percentile."""
    return f"{title:<44} {'p50 ms':>8} {'p95 ms':>8}   limit of p95"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of the processor-share measurement")
    seconds = parser.parse_args().seconds
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        first = start_to_first_frame(Path(scratch))
    whole, alone = asyncio.run(refreshes())
    large, _ = asyncio.run(refreshes(LARGE))
    share, output = followed(seconds)
    lines = [
        head("dashboard, 160×48"),
        row("process start to first frame", first, 0.7),
        row("key to screen", key_to_screen(), 0.1),
        row("whole-screen refresh (CPU)", whole, 0.033),
        row("  of which statistics", alone, 0.033),
        row("whole-screen refresh at 220×60 (CPU)", large, 0.05),
        f"{f'processor share at 4 Hz over {seconds:g} s':<44} {share:8.1%} {'':>8}   ≤ 20 % of a core"
        + verdict(share, 0.2),
        f"{'terminal output at 4 Hz, KB/s':<44} {output / 1e3:8.1f} {'':>8}   ≤ 50 KB/s" + verdict(output, 50e3),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
