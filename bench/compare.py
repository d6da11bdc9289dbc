"""Measures the comparison of two long recordings: `python bench/compare.py [MINUTES]` (make bench-compare).

Two runs of an hour at 280 requests per second, 1,000,000 requests each, are compared by the whole command: time from
its start to its end, processor time, and the most memory that it takes.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from busy_hour import write_busy

from servetop.core.tick import TICK_SECONDS
from tui import verdict

REQUESTS_PER_TICK = 70
TIMES = 3
MOST_SECONDS, MOST_BYTES = 15.0, 600e6


def compared(a: Path, b: Path) -> float:
    """Run the command, and return its seconds from start to end."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "servetop", "compare", str(a), str(b), "--json"], check=True, capture_output=True
    )
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    ticks = round(minutes * 60 / TICK_SECONDS)
    with tempfile.TemporaryDirectory() as scratch:
        a, b = Path(scratch) / "a.servetop", Path(scratch) / "b.servetop"
        write_busy(a, ticks, requests=REQUESTS_PER_TICK)
        shutil.copy(a, b)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = sorted(compared(a, b) for _ in range(TIMES))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / TIMES
    most = after.ru_maxrss * 1024
    print(f"two recordings of {ticks * REQUESTS_PER_TICK:,} requests, median of {TIMES}")
    median = seconds[TIMES // 2]
    print(f"time            {median:6.1f} s    ≤ {MOST_SECONDS:g} s{verdict(median, MOST_SECONDS)}")
    print(f"processor time  {cpu:6.1f} s")
    print(f"memory          {most / 1e6:6.0f} MB   ≤ {MOST_BYTES / 1e6:.0f} MB{verdict(most, MOST_BYTES)}")


if __name__ == "__main__":
    main()
