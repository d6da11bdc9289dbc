"""The process of a run's first sender: it is started before all else, and loads while the run does."""

from __future__ import annotations

import sys
from asyncio.subprocess import Process
from typing import TYPE_CHECKING

from servetop.loadgen.spawn import end_unused, spawn_sender

if TYPE_CHECKING:
    from servetop.loadgen.messages import SenderSetup
    from servetop.loadgen.senders import LoadSenders

SENDER_ARGV = (sys.executable, "-m", "servetop.cli.sender")


class FirstSender:
    """A sender process that waits for its set-up; made by `start`."""

    def __init__(self, process: Process) -> None:
        self._process: Process | None = process

    @classmethod
    async def start(cls) -> FirstSender:
        """Start the process; LoadError when the system refuses."""
        return cls(await spawn_sender(SENDER_ARGV))

    async def set_up(self, setup: SenderSetup, *, workers: int) -> LoadSenders:
        """Give it its set-up, and start the other senders; LoadError when one does not start."""
        from servetop.loadgen.senders import start_senders

        process, self._process = self._process, None
        return await start_senders(SENDER_ARGV, setup, workers=workers, spawned=process)

    async def end_unused(self) -> None:
        """End it if it was given no set-up."""
        process, self._process = self._process, None
        if process is not None:
            await end_unused(process)
