"""Measures the export of a large recording to Parquet: `python bench/export.py [REQUESTS]` (make bench-export).

A run of an hour is recorded in a temporary folder and exported by the whole command: requests for each second from the
start of the command to its end, and for each second of processor time.
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

REQUESTS = 1_000_000
TICKS = round(3600 / TICK_SECONDS)


def export(recording: Path, target: Path) -> tuple[float, float, float]:
    """Export the requests; return the seconds from start to end, those of the processor, and the bytes of memory."""
    command = [sys.executable, "-m", "servetop", "export", str(recording), "--format", "parquet", "-o", str(target)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> None:
    """Print the table."""
    per_tick = round((int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS) / TICKS) or 1
    requests = per_tick * TICKS
    with tempfile.TemporaryDirectory() as scratch:
        recording, target = Path(scratch) / "hour.servetop", Path(scratch) / "hour.parquet"
        write_busy(recording, TICKS, requests=per_tick)
        seconds, processor, memory = export(recording, target)
        print(f"{requests:,} requests in an hour, {recording.stat().st_size / 1e6:,.0f} MB")
        print(f"parquet {target.stat().st_size / 1e6:6.1f} MB in {seconds:.1f} s, {memory / 1e6:.0f} MB of memory")
        print(
            f"rate    {requests / seconds:,.0f} requests/s; for each second of a processor {requests / processor:,.0f}"
        )


if __name__ == "__main__":
    main()
