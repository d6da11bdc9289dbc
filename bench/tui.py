"""Measures the cost of the dashboard: `python bench/tui.py` from the repository's root (make bench).

Time to first frame, whole-screen refresh at 160×48 and 220×60, processor use at 4 Hz over 20 s, and terminal output
during that time, for a canned run.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import gc
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("cli", "core", "engines", "loadgen", "recordings", "tui")
sys.path[:0] = [str(ROOT), *(str(ROOT / part) for part in PARTS)]
SIZE, LARGE = (160, 48), (220, 60)
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


async def processor_share(seconds: float) -> float:
    """Fraction of one core while a live run is followed at 4 ticks per second."""
    from servetop.tui.app import DashboardApp
    from tests.tui import canned

    run = canned.growing(90.0)
    began = time.perf_counter()
    async with DashboardApp(run).run_test(size=SIZE):
        used, at = time.process_time(), time.perf_counter()
        while (now := time.perf_counter()) - at < seconds:
            run.now = 90.0 + (now - began)
            await asyncio.sleep(0.05)
        return (time.process_time() - used) / (time.perf_counter() - at)


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


def terminal_output(seconds: float) -> float:
    """Bytes/s that a dashboard in a pseudo-terminal writes while it follows a live run."""
    screen, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm-256color", "COLORTERM": "truecolor",
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", FOLLOWED], stdin=child, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    try:
        _drawn(screen, 3.0)  # start, first frames
        began = time.perf_counter()
        return _drawn(screen, seconds) / (time.perf_counter() - began)
    finally:
        process.terminate()
        process.wait()
        os.close(screen)


def key_to_redraw(path: Path = GOLDEN, *, keys: str = "t", presses: int = 40) -> list[float]:
    """Seconds from a key in a pseudo-terminal to the first byte drawn, on a recording that nothing else redraws.

    `keys` are pressed in turn.
    """
    from whole import terminal

    took = []
    with terminal("replay", str(path)) as screen:
        began = time.perf_counter()
        while time.perf_counter() < began + 3.0:  # start, first frames
            screen.read(0.1)
        screen.press(b" ")  # otherwise it plays
        while screen.read(1.0):
            pass
        for number in range(presses):
            began = time.perf_counter()
            screen.press(keys[number % len(keys)].encode())
            if screen.read(1.0):
                took.append(time.perf_counter() - began)
            while screen.read(0.4):
                pass
    return took


def _drawn(screen: int, seconds: float) -> int:
    deadline, drawn = time.perf_counter() + seconds, 0
    while (left := deadline - time.perf_counter()) > 0:
        if select.select([screen], [], [], left)[0]:
            drawn += len(os.read(screen, 1 << 16))
    return drawn


def row(name: str, values: list[float], limit: float) -> str:
    """Median and 95th percentile in milliseconds."""
    ordered = sorted(values)
    late = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"{name:<44} {statistics.median(values) * 1e3:8.1f} {late * 1e3:8.1f}   ≤ {limit * 1e3:.0f} ms"


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
    share = asyncio.run(processor_share(seconds))
    output = terminal_output(seconds)
    keys = key_to_redraw()
    lines = [
        f"{'dashboard, 160×48':<44} {'p50 ms':>8} {'p95 ms':>8}   limit",
        row("process start to first frame", first, 0.7),
        row("key to redraw", keys, 0.1),
        row("whole-screen refresh (CPU)", whole, 0.033),
        row("  of which statistics", alone, 0.033),
        row("whole-screen refresh at 220×60 (CPU)", large, 0.05),
        f"{f'processor share at 4 Hz over {seconds:g} s':<44} {share:8.1%} {'':>8}   ≤ 20 % of a core",
        f"{'terminal output at 4 Hz, KB/s':<44} {output / 1e3:8.1f} {'':>8}   ≤ 50 KB/s",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
