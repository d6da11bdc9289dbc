"""The sender process: frames in on stdin, frames out on stdout, errors on stderr.

It ends when stdin closes, because then the run process is gone. Termination signals are ignored and handled by the run
process, since systemd sends them to every process of a unit.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
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
from servetop.core.system.scheduling import limit_real_time
from servetop.loadgen.messages import FrameCodec, SenderReport, SenderSetup, ToSender
from servetop.loadgen.pacing import quiet_collector
from servetop.loadgen.sender.scheduled_commands import ScheduledCommands
from servetop.loadgen.sender.sender import Sender
from servetop.loadgen.sender.sender_priority import SenderPriority
from servetop.loadgen.transport.transport_factory import transport_factory
from servetop.workload.stages.plan import ServedModel

MAX_UNREAD_BYTES = 256 << 20
"""Unread report data after which the sender ends with an error."""

SENDER_NICENESS = -10
LONGEST_COMPUTATION = 0.5
"""Seconds without a pause after which a sender leaves the real-time class."""
_PR_SET_PDEATHSIG = 1

DialectFactory = Callable[[SenderSetup], Dialect]


def serve_sender(dialect_factory: DialectFactory) -> int:
    """Run a sender until stdin closes and return the process's exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _die_with_parent()
    _raise_file_limit()
    _raise_priority()
    reports_fd = os.dup(1)
    os.dup2(2, 1)  # printed text must not end up between the frames
    with asyncio.Runner(loop_factory=_loop_factory()) as runner, quiet_collector():
        return runner.run(_session(dialect_factory, reports_fd))


async def _session(dialect_factory: DialectFactory, reports_fd: int) -> int:
    return await SenderSession(dialect_factory).serve(reports_fd)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # no uvloop for this platform: asyncio's own loop, slower
        return None
    return uvloop.new_event_loop


def _die_with_parent() -> None:
    """Have the kernel kill this process with its parent: a busy sender may not notice that stdin has closed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _raise_file_limit() -> None:
    """Raise the soft limit of open files, because every request in flight needs one."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _raise_priority() -> None:
    """Take precedence over the engine on a shared machine if permitted; a sender that waits for a CPU measures wrong.

    It counts while the sender is not in the real-time class. Linux divides CPU time between sessions first (autogroup):
    a busy engine in its own session starved a sender of niceness -10 for seconds. The sender leads a session too, so
    it can lower its group's niceness.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, SENDER_NICENESS)
        if os.getsid(0) == os.getpid():
            Path("/proc/self/autogroup").write_text(str(SENDER_NICENESS), encoding="ascii")


def real_time_priority(setup: SenderSetup) -> SenderPriority | None:
    """Return the sender's use of the real-time class, which ends if it computes for long; None without that class."""
    if sys.platform != "linux":
        return None
    priority = SenderPriority(processors=len(os.sched_getaffinity(0)), senders=setup.workers)
    signal.signal(signal.SIGXCPU, lambda *_: priority.computed_too_long())
    limit_real_time(LONGEST_COMPUTATION)
    return priority


class SenderSession(asyncio.Protocol):
    """Reads messages from stdin, creates the sender when its setup arrives, and passes it plans and commands.

    Created on the running event loop.
    """

    def __init__(self, dialect_factory: DialectFactory) -> None:
        self._dialect_factory = dialect_factory
        self._incoming = FrameCodec(ToSender)
        self._outgoing = FrameCodec(SenderReport)
        self._setup: SenderSetup | None = None
        self._sender: Sender | None = None
        self._scheduled: ScheduledCommands | None = None
        self._pipe: asyncio.WriteTransport | None = None
        self._exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve(self, reports_fd: int) -> int:
        """Run until stdin closes, or until an error, which goes to stderr with exit code 1; return the exit code."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unexpected)
        reports = os.fdopen(reports_fd, "wb", buffering=0)
        self._pipe, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, reports)
        await loop.connect_read_pipe(lambda: self, sys.stdin)
        code = await self._exit_code
        if self._scheduled is not None:
            self._scheduled.close()
        if self._sender is not None:
            await self._sender.close()
        self._pipe.abort()
        return code

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._incoming.feed(data):
                self._handle(message)
        except ServetopError as error:
            self._fail(str(error))

    def _handle(self, message: ToSender) -> None:
        if message.setup is not None:
            self._setup = message.setup
            self._sender = self._create(message.setup)
            self._scheduled = ScheduledCommands(self._sender, MonotonicClock(message.setup.origin_ns))
            return
        if self._sender is None or self._scheduled is None:
            raise LoadError("protocol error: the sender received a message before its setup")
        if message.plan is not None:
            if message.plan.served is not None:
                self._follow(self._sender, message.plan.served)
            self._sender.begin(message.plan)
        if message.timed_command is not None:
            self._scheduled.add(message.timed_command)
        if message.command is not None:
            self._sender.apply(message.command)

    def _follow(self, sender: Sender, served: ServedModel) -> None:
        """Send to the model that the engine serves now."""
        assert self._setup is not None
        setup = dataclasses.replace(
            self._setup,
            model=served.model,
            max_model_len=served.max_model_len,
            token_ids=served.token_ids,
            block_size=served.block_size,
        )
        if setup != self._setup:
            self._setup = setup
            sender.use(dataclasses.replace(setup, draws=None), self._dialect_factory(setup))

    def _create(self, setup: SenderSetup) -> Sender:
        clock, dialect = MonotonicClock(setup.origin_ns), self._dialect_factory(setup)
        transport = transport_factory(setup, dialect, clock)
        priority = real_time_priority(setup)
        return Sender(setup, dialect, clock=clock, transport=transport, report=self._send, priority=priority)

    def _send(self, report: SenderReport) -> None:
        if self._pipe is None:
            return
        self._pipe.write(self._outgoing.frame(report))
        if self._pipe.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._fail("the run process does not read the sender's reports")

    def connection_lost(self, _exc: Exception | None) -> None:
        if not self._exit_code.done():
            self._exit_code.set_result(0)

    def _fail(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201, TID251 - the run process reads the pipe
        if not self._exit_code.done():
            self._exit_code.set_result(1)

    def _unexpected(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the sender after an unexpected error, because wrong numbers are worse than none."""
        error = context.get("exception")
        if isinstance(error, OSError):  # a connection that failed while it was being closed
            return
        if error is not None:
            traceback.print_exception(error, file=sys.stderr)  # noqa: TID251 - as in `_fail`
        self._fail(f"internal error in the sender: {error or context.get('message')}")
