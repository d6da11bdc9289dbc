"""The processes of a case: all that inherited its mark, in any session or group."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

MARK = "SERVETOP_CHAOS_ID"
LOOK_AGAIN = 0.02
LOOK_AROUND = 0.2
"""Seconds between two looks at all processes, which take milliseconds each."""

_Found = TypeVar("_Found")


def marked(mark: str) -> dict[int, str]:
    """Living processes with this mark in their environment, and their command lines."""
    wanted = f"{MARK}={mark}\0".encode()
    found: dict[int, str] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if wanted in _bytes(f"/proc/{entry}/environ") + b"\0":
                found[int(entry)] = _bytes(f"/proc/{entry}/cmdline").replace(b"\0", b" ").decode().strip()
    return found


def _bytes(path: str) -> bytes:
    """Of a small file, without the cost of a file object: hundreds are read in each look."""
    number = os.open(path, os.O_RDONLY)
    try:
        return os.read(number, 1 << 20)
    finally:
        os.close(number)


def end_marked(mark: str) -> None:
    """Kill what is left of a case."""
    for pid in marked(mark):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def peak_memory(pids: dict[int, str]) -> int:
    """Bytes that any of them held at most."""
    return max((_peak(pid) for pid in pids), default=0)


def _peak(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc", str(pid), "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def until(condition: Callable[[], _Found | None], *, seconds: float, look_again: float = LOOK_AGAIN) -> _Found | None:
    """The condition's first true value; None when none comes in time."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            return None
        time.sleep(look_again)
    return value
