"""Which processes an engine consists of: its group, and every descendant seen while it ran."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import psutil


class ProcessTree:
    """The processes below `pid`, the leader of a session and group of its own.

    A descendant that leaves the group is known when `refresh` saw it below the leader; pids are told apart from
    later processes with the same number by their creation time. Zombies count as gone.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._known: dict[int, psutil.Process] = {}

    def refresh(self) -> None:
        """Note who is below the leader now (some milliseconds; may be called from another thread)."""
        known = {pid: each for pid, each in self._known.items() if _runs(each)}
        with suppress(psutil.Error):
            leader = psutil.Process(self.pid)
            for each in [leader, *leader.children(recursive=True)]:
                known.setdefault(each.pid, each)
        self._known = known

    def living(self) -> list[psutil.Process]:
        """Members of the group and known descendants that still run."""
        found = {pid: each for pid, each in self._known.items() if _runs(each)}
        for pid in psutil.pids():
            with suppress(OSError, psutil.Error):
                if pid not in found and os.getpgid(pid) == self.pid and _runs(process := psutil.Process(pid)):
                    found[pid] = process
        return list(found.values())

    def signal_leader(self, number: signal.Signals) -> None:
        """As a person's Ctrl-C would reach the main process alone: it stops its own workers in order."""
        with suppress(OSError):
            os.kill(self.pid, number)

    def signal_all(self, number: signal.Signals) -> None:
        """To the group, and to known descendants that left it."""
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
