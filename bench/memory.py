"""Measures the memory of reading a long recording: `python bench/memory.py [REQUESTS]` (make bench-memory).

Two hours with 5,000,000 requests are recorded in a temporary folder, and each command reads them in a process of its
own: the most memory that it takes, its processor time, and the time from start to end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from busy_hour import write_busy

from servetop.core.tick import TICK_SECONDS
from tui import verdict

TICKS = round(2 * 3600 / TICK_SECONDS)
TOKENS = 8
COMMANDS = (("summary",), ("summary", "--json"), ("check",))
MOST_BYTES = 900e6


def measured(command: tuple[str, ...], path: Path) -> tuple[float, float, float]:
    """Run a command; return the bytes and the processor time that it took, and its seconds from start to end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "servetop", *command, str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 98, 99):  # a check may say that a rule is broken
        raise SystemExit(f"servetop {' '.join(command)} ended with {process.returncode}")
    return usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime, time.perf_counter() - began


def main() -> None:
    """Print the table."""
    per_tick = round((int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000) / TICKS) or 1
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "long.servetop"
        write_busy(path, TICKS, requests=per_tick, tokens=TOKENS)
        print(f"a recording of {TICKS * per_tick:,} requests, {path.stat().st_size / 1e6:,.0f} MB")
        for command in COMMANDS:
            most, cpu, seconds = measured(command, path)
            limit = f"≤ {MOST_BYTES / 1e6:.0f} MB{verdict(most, MOST_BYTES)}"
            times = f"processor {cpu:4.0f} s, {seconds:4.0f} s in all"
            print(f"{' '.join(command):15} {most / 1e6:6.0f} MB   {limit}   {times}")


if __name__ == "__main__":
    main()
