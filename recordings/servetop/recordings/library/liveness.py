"""Which process writes a recording, told so that a later process with the same number is not taken for it."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass

import orjson

LARGEST_PID = (1 << 31) - 1
_CREATE_TIME_TOLERANCE = 2.0
"""Seconds that two readings of one process's start may differ by (psutil adds the boot time, which ntp moves)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A process on a machine."""

    pid: int
    started: float
    """Unix time."""
    host: str

    @classmethod
    def this_process(cls) -> Writer:
        """The process that asks."""
        import psutil  # only where a process is asked about: most recordings have ended

        pid = os.getpid()
        return cls(pid=pid, started=psutil.Process(pid).create_time(), host=platform.node())

    @classmethod
    def from_json(cls, text: str | None) -> Writer | None:
        """What `to_json` wrote; None when nothing usable is there."""
        try:
            data = orjson.loads(text or "null")
            writer = cls(pid=int(data["pid"]), started=float(data["started"]), host=str(data["host"]))
        except (TypeError, KeyError, ValueError, OverflowError):
            return None
        return writer if 0 < writer.pid <= LARGEST_PID else None

    def to_json(self) -> str:
        """For the recording's `run.writer`."""
        return orjson.dumps(asdict(self)).decode()

    def is_here(self) -> bool:
        """It runs, or ran, on this machine."""
        return self.host == platform.node()

    def is_alive(self) -> bool:
        """It runs on this machine; a zombie does not, nor does another process that got its number since."""
        if not self.is_here():
            return False
        import psutil

        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) <= _CREATE_TIME_TOLERANCE
            return same and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        except psutil.Error:
            return False
