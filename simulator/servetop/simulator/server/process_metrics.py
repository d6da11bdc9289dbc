"""Metrics of the simulator's own process, under the names of Prometheus' client libraries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

from servetop.simulator.server.exposition import SampleSeries

_PROC = Path("/proc/self")


def process_metrics(proc: Path = _PROC) -> Iterator[SampleSeries]:
    """Yield CPU time and start, and the memory and open files where the system has `/proc`, as the libraries do."""
    used = os.times()
    yield _series(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        used.user + used.system,
        kind="counter",
    )
    yield _series("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", _start())
    with suppress(OSError, ValueError, IndexError):
        pages = int((proc / "statm").read_text().split()[1])
        yield _series("process_resident_memory_bytes", "Resident memory size in bytes.", pages * _page_size())
        yield _series("process_open_fds", "Number of open file descriptors.", len(list((proc / "fd").iterdir())))


@cache
def _start() -> float:
    return float(psutil.Process().create_time())


def _page_size() -> int:
    return int(os.sysconf("SC_PAGE_SIZE"))


def _series(name: str, text: str, value: float, *, kind: str = "gauge") -> SampleSeries:
    series = SampleSeries(name, text, kind=kind, labels={})
    series.set(value)
    return series
