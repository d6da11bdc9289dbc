"""The run's end of a sender process."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence

from servetop.core.errors import LoadError
from servetop.core.events import Command
from servetop.loadgen.messages import FrameCodec, SenderReport, SenderSetup, TimedCommand, ToSender
from servetop.loadgen.worker.spawn import READ_BYTES, Spawned, spawn_sender
from servetop.workload.plan import LoadPlan

_STDERR_LINES = 40
_CLOSE_SECONDS = 3.0


class SenderHandle:
    """A sender in a process of its own; made by `start`."""

    def __init__(self, process: Spawned) -> None:
        self._process = process
        self._outgoing = FrameCodec(ToSender)
        self._incoming = FrameCodec(SenderReport)
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._listening = asyncio.ensure_future(self._listen())
        self._closing = False

    @classmethod
    async def start(cls, argv: Sequence[str], setup: SenderSetup, *, spawned: Spawned | None = None) -> SenderHandle:
        """Run a command that ends in `serve_sender`, and give it its set-up; reports begin as soon as it is up.

        `spawned` is a process of that command which runs already.
        """
        process = spawned or spawn_sender(argv)
        await process.connect()
        sender = cls(process)
        await sender._tell(ToSender(setup=setup))
        return sender

    @classmethod
    async def start_all(
        cls, argv: Sequence[str], setups: Sequence[SenderSetup], *, spawned: Spawned | None = None
    ) -> list[SenderHandle]:
        """One for each set-up, or none: those that started are ended when another did not."""
        there = [spawned, *([None] * (len(setups) - 1))]
        starting = (cls.start(argv, setup, spawned=each) for setup, each in zip(setups, there, strict=True))
        started = await asyncio.gather(*starting, return_exceptions=True)
        failures = [each for each in started if isinstance(each, BaseException)]
        senders = [each for each in started if isinstance(each, SenderHandle)]
        if failures:
            await asyncio.gather(*(sender.close() for sender in senders))
            raise failures[0]
        return senders

    @property
    def pid(self) -> int:
        """Of the sender's process."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it lives."""
        return self._process.returncode

    async def begin(self, plan: LoadPlan) -> None:
        """Play a plan from its `begin` on, instead of the one before."""
        await self._tell(ToSender(plan=plan))

    async def command(self, command: Command, order: TimedCommand | None = None) -> None:
        """Change the load that is being played, at once or as an order says; the reply comes with a report."""
        await self._tell(ToSender(command=command, order=order))

    async def order(self, order: TimedCommand) -> None:
        """Change who is at work."""
        await self._tell(ToSender(order=order))

    async def reports(self) -> AsyncIterator[SenderReport]:
        """One report a tick until `close`; LoadError when the sender dies."""
        while data := await self._process.stdout.read(READ_BYTES):
            for report in self._incoming.feed(data):
                yield report
        if not self._closing:
            raise await self._death()

    async def close(self) -> None:
        """End the sender, whatever it is doing; what it has not reported is lost."""
        self._closing = True
        self._process.stdin.close()
        with contextlib.suppress(ConnectionError):
            await self._process.stdin.wait_closed()
        try:
            await asyncio.wait_for(self._process.wait(), _CLOSE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._listening
        with contextlib.suppress(RuntimeError):  # somebody still waits in `reports`, and will see the end
            await self._process.stdout.read()

    async def _tell(self, message: ToSender) -> None:
        try:
            self._process.stdin.write(self._outgoing.frame(message))
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:  # RuntimeError: uvloop's word for a pipe that has closed
            raise await self._death() from error

    async def _death(self) -> LoadError:
        code = await self._process.wait()
        await self._listening
        death = LoadError(
            f"the load generator died (exit code {code}): {self._stderr[-1] if self._stderr else 'it said nothing'}"
        )
        death.add_note("\n".join(self._stderr))
        return death

    async def _listen(self) -> None:
        with contextlib.suppress(ValueError):  # a line without end: what came before it must do
            async for line in self._process.stderr:
                self._stderr.append(line.decode("utf-8", "replace").rstrip())
