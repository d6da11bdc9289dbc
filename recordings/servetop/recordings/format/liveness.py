"""Identifies the writer of a recording by pid and start time, so a recycled pid is not mistaken for it."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The process that writes a recording, and its machine."""

    pid: int
    started: float
    """Start of the process, Unix time."""
    host: str

    @classmethod
    def this_process(cls) -> Writer:
        """Return the writer of this process."""
        import psutil  # only needed for unfinished recordings

        pid = os.getpid()
        return cls(pid=pid, started=psutil.Process(pid).create_time(), host=platform.node())

    @classmethod
    def from_json(cls, text: str | None) -> Writer | None:
        """Reverse `to_json`; None for invalid text."""
        try:
            data = orjson.loads(text or "null")
            writer = cls(pid=int(data["pid"]), started=float(data["started"]), host=str(data["host"]))
        except (TypeError, KeyError, ValueError, OverflowError):
            return None
        return writer if 0 < writer.pid <= MAX_PID else None

    def to_json(self) -> str:
        """Return the JSON text of column `run.writer`."""
        return orjson.dumps(asdict(self)).decode()

    def is_here(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.host == platform.node()

    def is_alive(self) -> bool:
        """Whether it runs on this machine; False for a zombie and for another process with a recycled pid."""
        if not self.is_here():
            return False
        import psutil

        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) <= _CREATE_TIME_TOLERANCE
            return same and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        except psutil.Error:
            return False


MAX_PID = (1 << 31) - 1
_CREATE_TIME_TOLERANCE = 2.0
"""Seconds by which two readings of a process's start may differ: psutil adds the boot time, which NTP adjusts."""
