"""GPU memory of the engine: the driver's processes that belong to the engine's process tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

Owns = Callable[[int], bool]
"""Returns whether a pid belongs to the engine."""


def any_process(pid: int) -> bool:
    """Count all processes, because the processes of an attached engine are unknown."""
    del pid
    return True


def in_tree(pid: int, leader: int) -> bool:
    """Whether the process is the leader, in its session, or a descendant; False if it has exited."""
    import psutil  # in the thread that reads the GPUs

    with suppress(OSError, psutil.Error):
        if pid == leader or os.getsid(pid) == leader:
            return True
        return any(parent.pid == leader for parent in psutil.Process(pid).parents())
    return False


class OwnPids:
    """Recognises the processes of a started engine: the tree of its leader.

    A recognised pid stays the engine's after it exits, when its parents are unknown: a driver that still lists it has
    not freed its memory.
    """

    def __init__(self) -> None:
        self._leader: int | None = None
        self._known: set[int] = set()

    def follow(self, leader: int | None) -> None:
        """Follow the engine with this leader; None: an attached engine without a known process."""
        self._leader, self._known = leader, set()

    def __call__(self, pid: int) -> bool:
        if pid not in self._known and self._leader is not None and in_tree(pid, self._leader):
            self._known.add(pid)
        return pid in self._known


def owned_memory(held: Iterable[tuple[int, int | None]], owns: Owns) -> int | None:
    """Sum the bytes of the engine's pids; None if none of the pids is the engine's.

    None is not 0: in a container a driver may list no processes, or other pids.
    """
    own = [size for pid, size in held if size is not None and owns(pid)]
    return sum(own) if own else None
