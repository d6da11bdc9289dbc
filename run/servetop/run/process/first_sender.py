"""The process of a run's first sender: it is started before all else, and loads while the run does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from servetop.loadgen.worker.spawn import Spawned, spawn_sender

if TYPE_CHECKING:
    from servetop.loadgen.messages import SenderSetup
    from servetop.loadgen.worker.start_senders import LoadSenders

SENDER_ARGV = (sys.executable, "-m", "servetop.run.process.sender_program")
_NO_RUN = {"-h", "--help", "--version", "--detach"}


def runs_in_this_process(argv: Sequence[str]) -> bool:
    """Whether a command line looks as if its process will play a run: a guess, before it is read in earnest."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    headless = "--headless" in own or ("--json" in own and own[0].startswith("-"))
    return headless and _NO_RUN.isdisjoint(own)


class FirstSender:
    """A sender process that waits for its set-up; made by `start`."""

    def __init__(self, process: Spawned) -> None:
        self._process: Spawned | None = process

    @classmethod
    def start(cls) -> FirstSender:
        """Start the process; LoadError when the system refuses."""
        return cls(spawn_sender(SENDER_ARGV))

    async def set_up(self, setup: SenderSetup, *, workers: int) -> LoadSenders:
        """Give it its set-up, and start the other senders; LoadError when one does not start."""
        from servetop.loadgen.worker.start_senders import start_senders

        process, self._process = self._process, None
        return await start_senders(SENDER_ARGV, setup, workers=workers, spawned=process)

    def end_unused(self) -> None:
        """End it if it was given no set-up."""
        process, self._process = self._process, None
        if process is not None:
            process.end_unused()
