"""Which processes belong to a case: all that inherited its mark, whatever session or group they are in now."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

MARK = "SERVETOP_CHAOS_ID"
LOOK_AGAIN = 0.02

_Found = TypeVar("_Found")


def marked(mark: str) -> dict[int, str]:
    """Living processes with this mark in their environment, and their command lines."""
    wanted = f"{MARK}={mark}\0".encode()
    found: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            if wanted in Path("/proc", entry, "environ").read_bytes() + b"\0":
                found[int(entry)] = Path("/proc", entry, "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return found


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


def until(condition: Callable[[], _Found | None], *, seconds: float) -> _Found | None:
    """The condition's first true value; None when none comes in time."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            return None
        time.sleep(LOOK_AGAIN)
    return value


def free_port() -> int:
    """One that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
