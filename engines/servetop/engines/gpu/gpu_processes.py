"""Whose memory on a GPU is the engine's: of the processes that a driver lists, those of the engine's tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

Owns = Callable[[int], bool]
"""Whether the process of a pid is the engine's."""


def any_process(pid: int) -> bool:
    """All processes count: of an engine that was attached to, nobody knows which are its own."""
    del pid
    return True


def in_tree(pid: int, leader: int) -> bool:
    """It is the leader, of the leader's session, or a descendant; a process that is gone is none of them."""
    import psutil  # in the thread that reads the GPUs

    with suppress(OSError, psutil.Error):
        if pid == leader or os.getsid(pid) == leader:
            return True
        return any(parent.pid == leader for parent in psutil.Process(pid).parents())
    return False


class OwnPids:
    """Tells a started engine's processes: its leader's tree, as long as a driver lists them.

    One that was found to be the engine's stays so after its end, when nothing tells any more whose it was: then a
    driver that still lists it has not freed its memory.
    """

    def __init__(self) -> None:
        self._leader: int | None = None
        self._known: set[int] = set()

    def follow(self, leader: int | None) -> None:
        """An engine has been started; None: the one there is has no process of its own."""
        self._leader, self._known = leader, set()

    def __call__(self, pid: int) -> bool:
        if pid not in self._known and self._leader is not None and in_tree(pid, self._leader):
            self._known.add(pid)
        return pid in self._known


def owned_memory(held: Iterable[tuple[int, int | None]], owns: Owns) -> int | None:
    """Bytes that the engine holds, of pids with what each holds; None when no process of the engine is among them.

    That is not 0: in a container a driver may list no processes, or list them under other numbers.
    """
    own = [size for pid, size in held if size is not None and owns(pid)]
    return sum(own) if own else None
