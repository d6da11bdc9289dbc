"""Measures the pages of large recordings: `python bench/report.py [REQUESTS…]` (make bench-report).

Runs of an hour, and the shipped one of some minutes, are written as pages by the whole command: the size of the file,
the time from the start of the command to its end, and the most memory that it takes; and how long a browser takes from
its navigation to the first paint with content.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from busy_hour import write_busy

from servetop.core.tick import TICK_SECONDS
from servetop.recordings.library.samples import sample_path
from tests.integration.headless_browser import started_browser
from tui import verdict

SIZES = (100_000, 1_000_000)
TICKS = round(3600 / TICK_SECONDS)
MOST_BYTES, MOST_SECONDS, MOST_MEMORY, MOST_PAINT = 5e6, 20.0, 500e6, 1.0
PAINTS = 5
FIRST_PAINT = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def write_page(recording: Path, page: Path) -> tuple[float, float]:
    """Write a page by the command; return its seconds from start to end, and the bytes that it took at most."""
    command = [sys.executable, "-m", "servetop", "report", str(recording), "-o", str(page)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, usage.ru_maxrss * 1024


def first_paint(page: Path) -> float | None:
    """Return the median seconds of PAINTS loads to the first paint with content; None without Chromium."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        return None
    found: list[float] = []
    with contextlib.ExitStack() as running:
        browser = started_browser()
        running.callback(browser.quit)
        for _ in range(PAINTS):
            browser.get("about:blank")
            browser.get(page.as_uri())
            while (painted := browser.execute_script(FIRST_PAINT)) is None:
                time.sleep(0.05)
            found.append(painted / 1000)
    return statistics.median(found)


def print_paint(page: Path) -> None:
    """Print the line of the first paint."""
    paint = first_paint(page)
    if paint is None:
        print(
            "paint   not measured: needs chromium and chromedriver (tests/integration/install_browser.sh)", flush=True
        )
        return
    print(f"paint   {paint:6.2f} s    ≤ {MOST_PAINT:g} s{verdict(paint, MOST_PAINT)}", flush=True)


def measure_sample(scratch: Path) -> None:
    """Write the page of the shipped run, and print its size and its first paint."""
    recording, page = sample_path("sample"), scratch / "sample.html"
    write_page(recording, page)
    print(f"the shipped run\npage    {page.stat().st_size / 1e6:6.2f} MB")
    print_paint(page)


def measure(requests: int, scratch: Path) -> None:
    """Record a run of about `requests` requests, write its page, and print the table."""
    per_tick = max(1, round(requests / TICKS))
    ticks = requests // per_tick
    recording, page = scratch / f"{requests}.servetop", scratch / f"{requests}.html"
    write_busy(recording, ticks, requests=per_tick)
    seconds, memory = write_page(recording, page)
    size = page.stat().st_size
    print(f"{ticks * per_tick:,} requests in {ticks * TICK_SECONDS / 60:.0f} min")
    print(f"page    {size / 1e6:6.1f} MB   ≤ {MOST_BYTES / 1e6:g} MB{verdict(size, MOST_BYTES)}")
    print(f"time    {seconds:6.1f} s    ≤ {MOST_SECONDS:g} s{verdict(seconds, MOST_SECONDS)}")
    print(f"memory  {memory / 1e6:6.0f} MB   ≤ {MOST_MEMORY / 1e6:.0f} MB{verdict(memory, MOST_MEMORY)}", flush=True)
    print_paint(page)
    recording.unlink()


def main() -> None:
    """Print a table for each size."""
    sizes = [int(each) for each in sys.argv[1:]] or SIZES
    with tempfile.TemporaryDirectory() as scratch:
        measure_sample(Path(scratch))
        for requests in sizes:
            measure(requests, Path(scratch))


if __name__ == "__main__":
    main()
