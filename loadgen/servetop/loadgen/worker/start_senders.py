"""One sender or several: what a run is played by."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from servetop.core.events import Command
from servetop.loadgen.messages import SenderReport, SenderSetup
from servetop.loadgen.worker.sender_handle import SenderHandle
from servetop.loadgen.worker.spawn import Spawned
from servetop.workload.plan import LoadPlan

AUTO = 0
"""For `RunConfig.workers`: as many senders as the load needs, one after the other."""
MOST_BY_ITSELF = 8
"""Senders that `AUTO` starts, those that stand by included."""


class LoadSenders(Protocol):
    """Whatever plays plans and reports once a tick; nothing in it assumes that it is on this machine."""

    async def begin(self, plan: LoadPlan) -> None:
        """See SenderHandle."""
        ...

    async def command(self, command: Command) -> None:
        """See SenderHandle."""
        ...

    def reports(self) -> AsyncIterator[SenderReport]:
        """See SenderHandle."""
        ...

    async def close(self) -> None:
        """See SenderHandle."""
        ...


async def start_senders(
    argv: Sequence[str], setup: SenderSetup, *, workers: int = 1, spawned: Spawned | None = None
) -> LoadSenders:
    """So many local processes of a command that ends in `serve_sender`; LoadError when one does not start.

    `spawned` is one of them that runs already.
    """
    most = most_by_itself() if workers == AUTO else workers
    if most == 1:
        return await SenderHandle.start(argv, setup, spawned=spawned)
    from servetop.loadgen.worker.sender_pool import SenderPool  # for several senders only

    return await SenderPool.start(argv, setup, workers=most, at_work=1 if workers == AUTO else 0, spawned=spawned)


def most_by_itself() -> int:
    """One processor is left to the run and to the engine; at least one sender."""
    own = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return max(1, min(MOST_BY_ITSELF, len(own) - 1))
