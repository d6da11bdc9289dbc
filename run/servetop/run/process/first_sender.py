"""The first sender process of a run, which is started before everything else and loads in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from servetop.core.system.own_python import python_argv
from servetop.loadgen.worker.spawn import Spawned, spawn_sender

if TYPE_CHECKING:
    from servetop.loadgen.messages import SenderSetup
    from servetop.loadgen.worker.start_senders import LoadSenders

SENDER_ARGV = python_argv("-m", "servetop.run.process.sender_program")
_NO_RUN = {"-h", "--help", "--help-all", "--version", "--detach", "--dry-run"}


def runs_in_this_process(argv: Sequence[str]) -> bool:
    """Whether a command line probably runs a load in this process; a guess made before it is parsed."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    if own[:1] == ["watch"]:
        return False
    headless = "--headless" in own or ("--json" in own and own[0].startswith("-"))
    return headless and _NO_RUN.isdisjoint(own)


class FirstSender:
    """A sender process that waits for its set-up; created by `start`."""

    def __init__(self, process: Spawned) -> None:
        self._process: Spawned | None = process

    @classmethod
    def start(cls) -> FirstSender:
        """Start the process; LoadError if that fails."""
        return cls(spawn_sender(SENDER_ARGV))

    async def set_up(self, setup: SenderSetup, *, workers: int) -> LoadSenders:
        """Send the set-up, and start the other senders; LoadError if one does not start."""
        from servetop.loadgen.worker.start_senders import start_senders

        process, self._process = self._process, None
        return await start_senders(SENDER_ARGV, setup, workers=workers, spawned=process)

    def end_unused(self) -> None:
        """End the process if it has received no set-up."""
        process, self._process = self._process, None
        if process is not None:
            process.end_unused()
