"""A change of the batch size of the engine that is under way: its command, its task, and the commands that wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any

from servetop.core.events import Command
from servetop.core.interfaces.run_source import EngineFacts


class PendingBatchChange:
    """At most one change at a time; a restart of the engine with the batch size of the next stage counts as one."""

    def __init__(self) -> None:
        self.command: Command | None = None
        """The user's command behind the change; None for that of a stage, and without a change."""
        self._task: asyncio.Task[EngineFacts] | None = None
        self._waiting: deque[Command] = deque()

    @property
    def is_running(self) -> bool:
        """Whether the engine is being changed or restarted, or has been and the result was not taken."""
        return self._task is not None

    @property
    def is_pending(self) -> bool:
        """Whether it is running, or accepted and waits until the load has drained."""
        return self.is_running or self.command is not None

    @property
    def is_done(self) -> bool:
        """Whether the result can be taken."""
        return self._task is not None and self._task.done()

    def accept(self, command: Command) -> None:
        """Note the command of a change that starts when the load has drained."""
        self.command = command

    def start(self, change: Coroutine[Any, Any, EngineFacts]) -> None:
        """Run a change; its result must be taken before the next one starts."""
        self._task = asyncio.ensure_future(change)

    def wait(self, command: Command) -> None:
        """Keep a command until the running change has been taken."""
        self._waiting.append(command)

    def next_waiting(self) -> Command | None:
        """Return the oldest command that waits, and forget it; None if there is none."""
        return self._waiting.popleft() if self._waiting else None

    def take(self) -> tuple[Command | None, asyncio.Task[EngineFacts]]:
        """Return the command and the ended task of a change that is done, and be ready for the next one."""
        assert self._task is not None
        taken = self.command, self._task
        self.command = self._task = None
        return taken

    async def cancel(self) -> None:
        """End a running change, and wait until it has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
