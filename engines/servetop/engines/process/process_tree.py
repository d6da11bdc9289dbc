"""The process tree of an engine: its process group and every descendant seen while it ran."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import psutil


class ProcessTree:
    """The processes below `pid`, the leader of a session and group of its own.

    A descendant that leaves the group is known if `refresh` saw it below the leader. Creation times guard against
    recycled pids. Zombies count as exited.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._known: dict[int, psutil.Process] = {}

    def refresh(self) -> None:
        """Record the current descendants of the leader; takes some milliseconds, thread-safe."""
        known = {pid: each for pid, each in self._known.items() if _runs(each)}
        with suppress(psutil.Error):
            leader = psutil.Process(self.pid)
            for each in [leader, *leader.children(recursive=True)]:
                known.setdefault(each.pid, each)
        self._known = known

    def living(self) -> list[psutil.Process]:
        """Return the members of the group and the known descendants that still run."""
        found = {pid: each for pid, each in self._known.items() if _runs(each)}
        for pid in psutil.pids():
            with suppress(OSError, psutil.Error):
                if pid not in found and os.getpgid(pid) == self.pid and _runs(process := psutil.Process(pid)):
                    found[pid] = process
        return list(found.values())

    def signal_leader(self, number: signal.Signals) -> None:
        """Signal the main process only, which then shuts its workers down gracefully."""
        with suppress(OSError):
            os.kill(self.pid, number)

    def signal_all(self, number: signal.Signals) -> None:
        """Signal the group, and known descendants that left it."""
        with suppress(OSError):
            os.killpg(self.pid, number)
        for each in self.living():
            with suppress(psutil.Error, OSError):
                each.send_signal(number)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
