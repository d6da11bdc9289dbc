"""The sender's process: frames in on stdin, frames out on stdout, its words on stderr.

It ends at once when stdin closes, because then the run process is gone. Signals that ask a run to end are the run
process's to handle: systemd sends them to every process of a unit.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from servetop.core.clock import MonotonicClock
from servetop.core.errors import LoadError, ServetopError
from servetop.core.interfaces.dialect import Dialect
from servetop.loadgen.messages import FrameCodec, SenderReport, SenderSetup, ToSender
from servetop.loadgen.sender.pacing import quiet_collector
from servetop.loadgen.sender.scheduled_commands import ScheduledCommands
from servetop.loadgen.sender.sender import Sender
from servetop.loadgen.transport.endpoint import Endpoint
from servetop.loadgen.transport.raw_transport import ClientFactory, RawTransport
from servetop.loadgen.transport.replica_transport import ReplicaTransport

MAX_UNREAD_BYTES = 256 << 20
"""Reports that the run process may leave unread before the sender gives up."""

SENDER_NICENESS = -10
_PR_SET_PDEATHSIG = 1

DialectFactory = Callable[[SenderSetup], Dialect]


def serve_sender(dialect_factory: DialectFactory) -> int:
    """Be a sender until stdin closes; the process's exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _die_with_parent()
    _raise_file_limit()
    _raise_priority()
    reports_fd = os.dup(1)
    os.dup2(2, 1)  # whatever prints must not get between the frames
    with asyncio.Runner(loop_factory=_loop_factory()) as runner, quiet_collector():
        return runner.run(_session(dialect_factory, reports_fd))


async def _session(dialect_factory: DialectFactory, reports_fd: int) -> int:
    return await SenderSession(dialect_factory).serve(reports_fd)


def chosen_transport(setup: SenderSetup, dialect: Dialect, clock: MonotonicClock) -> ClientFactory:
    """The transport of a set-up, to its server or to all its replicas; request ids are unique to the run."""
    endpoints = [
        Endpoint.parse(url, api_key=setup.api_key, headers=setup.workload.headers, connection=setup.connection)
        for url in (setup.url, *setup.more_urls)
    ]
    factories = [_transport_to(endpoint, setup, dialect, clock=clock) for endpoint in endpoints]
    if len(factories) == 1:
        return factories[0]
    return lambda listener: ReplicaTransport(factories, endpoints, clock=clock, listener=listener)


def _transport_to(endpoint: Endpoint, setup: SenderSetup, dialect: Dialect, *, clock: MonotonicClock) -> ClientFactory:
    ids = f"servetop-{setup.origin_ns:x}-{setup.worker}"
    if setup.connection.transport == "httpx":
        from servetop.loadgen.transport.httpx_transport import HttpxTransport

        return lambda listener: HttpxTransport(
            endpoint, path=dialect.path, request_ids=ids, clock=clock, listener=listener
        )
    return lambda listener: RawTransport(endpoint, path=dialect.path, request_ids=ids, clock=clock, listener=listener)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # no uvloop for this platform: asyncio's own loop, slower
        return None
    return uvloop.new_event_loop


def _die_with_parent() -> None:
    """A sender that is stopped or busy would not notice that its standard input has closed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _raise_file_limit() -> None:
    """Every request in flight needs a file descriptor."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _raise_priority() -> None:
    """Go before the engine on a shared machine, where that is allowed: a sender that waits for a processor lies.

    Linux shares processors between sessions first (autogroup): an engine that spins in a session of its own starved a
    sender of niceness -10 for seconds. The sender leads a session too, so its group's niceness is its own to lower.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, SENDER_NICENESS)
        if os.getsid(0) == os.getpid():
            Path("/proc/self/autogroup").write_text(str(SENDER_NICENESS), encoding="ascii")


class SenderSession(asyncio.Protocol):
    """Reads stdin; makes the sender when the set-up comes, and hands it plans and commands.

    Made on the running event loop.
    """

    def __init__(self, dialect_factory: DialectFactory) -> None:
        self._dialect_factory = dialect_factory
        self._incoming = FrameCodec(ToSender)
        self._outgoing = FrameCodec(SenderReport)
        self._sender: Sender | None = None
        self._appointments: ScheduledCommands | None = None
        self._pipe: asyncio.WriteTransport | None = None
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve(self, reports_fd: int) -> int:
        """Until stdin closes, or until something is wrong; then the words are on stderr and the code is 1."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unexpected)
        reports = os.fdopen(reports_fd, "wb", buffering=0)
        self._pipe, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, reports)
        await loop.connect_read_pipe(lambda: self, sys.stdin)
        code = await self._over
        if self._appointments is not None:
            self._appointments.close()
        if self._sender is not None:
            await self._sender.close()
        self._pipe.abort()
        return code

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        try:
            for message in self._incoming.feed(data):
                self._obey(message)
        except ServetopError as error:
            self._fail(str(error))

    def _obey(self, message: ToSender) -> None:
        if message.setup is not None:
            self._sender = self._make(message.setup)
            self._appointments = ScheduledCommands(self._sender, MonotonicClock(message.setup.origin_ns))
            return
        if self._sender is None or self._appointments is None:
            raise LoadError("a sender was given work before its set-up")
        if message.plan is not None:
            self._sender.begin(message.plan)
        if message.order is not None:
            self._appointments.make(message)
        elif message.command is not None:
            self._sender.obey(message.command)

    def _make(self, setup: SenderSetup) -> Sender:
        clock, dialect = MonotonicClock(setup.origin_ns), self._dialect_factory(setup)
        transport = chosen_transport(setup, dialect, clock)
        return Sender(setup, dialect, clock=clock, transport=transport, report=self._send)

    def _send(self, report: SenderReport) -> None:
        if self._pipe is None:
            return
        self._pipe.write(self._outgoing.frame(report))
        if self._pipe.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._fail("the run process does not read what its sender reports")

    def connection_lost(self, _exc: Exception | None) -> None:
        """Called by the event loop."""
        if not self._over.done():
            self._over.set_result(0)

    def _fail(self, words: str) -> None:
        print(words, file=sys.stderr, flush=True)  # noqa: T201, TID251 - the run process reads it from the pipe
        if not self._over.done():
            self._over.set_result(1)

    def _unexpected(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that nothing catches ends the sender: wrong numbers would be worse than none."""
        error = context.get("exception")
        if isinstance(error, OSError):  # a connection that broke while it was being closed
            return
        if error is not None:
            traceback.print_exception(error, file=sys.stderr)  # noqa: TID251 - as in `_fail`
        self._fail(f"the sender met an error of its own: {error or context.get('message')}")
