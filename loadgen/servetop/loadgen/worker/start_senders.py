"""Starts the sender processes of a run: one, or a pool of several."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from servetop.core.events import Command
from servetop.loadgen.messages import SenderReport, SenderSetup
from servetop.loadgen.worker.sender_handle import SenderHandle
from servetop.loadgen.worker.spawn import Spawned
from servetop.workload.stages.plan import LoadPlan

AUTO = 0
"""Value of `RunConfig.workers` for as many senders as the load needs, added one at a time."""
MAX_AUTO_SENDERS = 8
"""Senders that `AUTO` starts at most, including those on standby."""


class LoadSenders(Protocol):
    """One or several senders that play plans and report once per tick; need not be on this machine."""

    async def begin(self, plan: LoadPlan) -> None:
        """Start a plan in place of the previous one."""
        ...

    async def command(self, command: Command) -> None:
        """Change the load that is running; the reply comes with a report."""
        ...

    def reports(self) -> AsyncIterator[SenderReport]:
        """Yield one report per tick until `close`; LoadError if no sender is left."""
        ...

    async def close(self) -> None:
        """End the senders; what they have not reported is lost."""
        ...


async def start_senders(
    argv: Sequence[str], setup: SenderSetup, *, workers: int = 1, spawned: Spawned | None = None
) -> LoadSenders:
    """Start `workers` local processes of a command that runs `serve_sender`; LoadError if one does not start.

    `spawned` is one of them that is already running.
    """
    count = auto_senders() if workers == AUTO else workers
    if count == 1:
        return await SenderHandle.start(argv, setup, spawned=spawned)
    from servetop.loadgen.worker.sender_pool import SenderPool  # only for several senders

    return await SenderPool.start(argv, setup, workers=count, active=1 if workers == AUTO else 0, spawned=spawned)


def auto_senders() -> int:
    """Return the number of senders for `AUTO`: one CPU is left to the run and the engine; at least one sender."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return max(1, min(MAX_AUTO_SENDERS, len(cpus) - 1))
