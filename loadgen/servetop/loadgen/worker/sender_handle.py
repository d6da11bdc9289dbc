"""The run's handle of a sender process: start, messages, reports, death."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence

from servetop.core.errors import LoadError
from servetop.core.events import Command
from servetop.loadgen.messages import FrameCodec, SenderReport, SenderSetup, TimedCommand, ToSender
from servetop.loadgen.worker.spawn import READ_BYTES, Spawned, spawn_sender
from servetop.workload.stages.plan import LoadPlan

_STDERR_LINES = 40
_CLOSE_SECONDS = 3.0


class SenderHandle:
    """A sender in its own process; created by `start`. Implements LoadSenders."""

    def __init__(self, process: Spawned) -> None:
        self._process = process
        self._outgoing = FrameCodec(ToSender)
        self._incoming = FrameCodec(SenderReport)
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._stderr_reader = asyncio.ensure_future(self._read_stderr())
        self._closing = False

    @classmethod
    async def start(cls, argv: Sequence[str], setup: SenderSetup, *, spawned: Spawned | None = None) -> SenderHandle:
        """Start a command that runs `serve_sender` and send it its setup; it reports as soon as it is up.

        `spawned` is a process of that command that is already running.
        """
        process = spawned or spawn_sender(argv)
        await process.connect()
        sender = cls(process)
        await sender._send(ToSender(setup=setup))
        return sender

    @classmethod
    async def start_all(
        cls, argv: Sequence[str], setups: Sequence[SenderSetup], *, spawned: Spawned | None = None
    ) -> list[SenderHandle]:
        """Start a sender for each setup; if one fails to start, end the others and raise its error."""
        running = [spawned, *([None] * (len(setups) - 1))]
        starting = (cls.start(argv, setup, spawned=each) for setup, each in zip(setups, running, strict=True))
        started = await asyncio.gather(*starting, return_exceptions=True)
        failures = [each for each in started if isinstance(each, BaseException)]
        senders = [each for each in started if isinstance(each, SenderHandle)]
        if failures:
            await asyncio.gather(*(sender.close() for sender in senders))
            raise failures[0]
        return senders

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code; None while the process runs."""
        return self._process.returncode

    async def begin(self, plan: LoadPlan) -> None:
        """Start a plan at its `begin` time, in place of the previous one."""
        await self._send(ToSender(plan=plan))

    async def command(self, command: Command) -> None:
        """Apply a command on receipt; the reply comes with a report."""
        await self._send(ToSender(command=command))

    async def timed_command(self, timed: TimedCommand) -> None:
        """Apply a command, or a change of the active senders, at its time."""
        await self._send(ToSender(timed_command=timed))

    async def reports(self) -> AsyncIterator[SenderReport]:
        """Yield one report per tick until `close`; LoadError if the sender dies."""
        while data := await self._process.stdout.read(READ_BYTES):
            for report in self._incoming.feed(data):
                yield report
        if not self._closing:
            raise await self._death()

    async def close(self) -> None:
        """End the sender; what it has not reported is lost."""
        self._closing = True
        self._process.stdin.close()
        with contextlib.suppress(ConnectionError):
            await self._process.stdin.wait_closed()
        try:
            await asyncio.wait_for(self._process.wait(), _CLOSE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._stderr_reader
        with contextlib.suppress(RuntimeError):  # `reports` is still reading and will see the end
            await self._process.stdout.read()
        self._process.disconnect()

    async def _send(self, message: ToSender) -> None:
        try:
            self._process.stdin.write(self._outgoing.frame(message))
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:  # uvloop raises RuntimeError for a closed pipe
            raise await self._death() from error

    async def _death(self) -> LoadError:
        code = await self._process.wait()
        await self._stderr_reader
        death = LoadError(
            f"the load generator died (exit code {code}): {self._stderr[-1] if self._stderr else 'no error output'}"
        )
        death.add_note("\n".join(self._stderr))
        return death

    async def _read_stderr(self) -> None:
        with contextlib.suppress(ValueError):  # a line longer than the buffer: keep the lines before it
            async for line in self._process.stderr:
                self._stderr.append(line.decode("utf-8", "replace").rstrip())
