"""Whose memory on a GPU is the engine's: of the processes that a driver lists, those of the engine's tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil

Owns = Callable[[int], bool]
"""Whether the process of a pid is the engine's."""


def everybody(pid: int) -> bool:
    """All processes count: of an engine that was attached to, nobody knows which are its own."""
    del pid
    return True


def in_tree(pid: int, leader: int) -> bool:
    """It is the leader, of the leader's session, or a descendant; a process that is gone is none of them."""
    with suppress(OSError, psutil.Error):
        if pid == leader or os.getsid(pid) == leader:
            return True
        return any(parent.pid == leader for parent in psutil.Process(pid).parents())
    return False


def owned_memory(held: Iterable[tuple[int, int | None]], owns: Owns) -> int | None:
    """Bytes that the engine holds, of pids with what each holds; None when no process of the engine is among them.

    That is not 0: in a container a driver may list no processes, or list them under other numbers.
    """
    own = [size for pid, size in held if size is not None and owns(pid)]
    return sum(own) if own else None
