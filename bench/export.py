"""Measures the export of a large recording: `python bench/export.py [REQUESTS] [FORMAT...]` (make bench-export).

A run of an hour is recorded in a temporary folder and exported by the whole command, to Parquet and to a trace for
Perfetto: requests for each second from the start of the command to its end, and for each second of processor time.
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


FORMATS = ("parquet", "perfetto")


def export(recording: Path, target: Path, form: str) -> tuple[float, float, float]:
    """Export the requests; return the seconds from start to end, those of the processor, and the bytes of memory."""
    command = [sys.executable, "-m", "servetop", "export", str(recording), "--format", form, "-o", str(target)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def slices_of(trace: Path) -> int:
    """Return the number of slices in a trace."""
    with trace.open(encoding="ascii") as lines:
        return sum('"ph":"X"' in line for line in lines)


def main() -> None:
    """Print the table."""
    asked, *forms = sys.argv[1:] or [str(REQUESTS)]
    per_tick = round(int(asked) / TICKS) or 1
    requests = per_tick * TICKS
    with tempfile.TemporaryDirectory() as scratch:
        recording = Path(scratch) / "hour.servetop"
        write_busy(recording, TICKS, requests=per_tick)
        print(f"{requests:,} requests in an hour, {recording.stat().st_size / 1e6:,.0f} MB")
        for form in forms or FORMATS:
            target = Path(scratch) / f"hour.{form}"
            seconds, processor, memory = export(recording, target, form)
            print(f"{form} {target.stat().st_size / 1e6:.1f} MB in {seconds:.1f} s, {memory / 1e6:.0f} MB of memory")
            print(f"  {requests / seconds:,.0f} requests/s; for each second of a processor {requests / processor:,.0f}")
            if form == "perfetto":
                slices = slices_of(target)
                print(f"  {slices:,} slices: {1e6 / slices * processor:.1f} s of a processor for each 1,000,000")


if __name__ == "__main__":
    main()
