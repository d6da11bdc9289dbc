"""An engine's server process: start, log capture, graceful shutdown, and SIGKILL for whatever remains."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

from servetop.core.clock import Clock
from servetop.core.errors import EngineError
from servetop.core.system.environment import engine_environment
from servetop.core.system.own_python import python_argv
from servetop.core.system.package_data import package_path
from servetop.engines.process import watchdog
from servetop.engines.process.log_filter import LogCapture
from servetop.engines.process.process_tree import ProcessTree
from servetop.engines.process.stop_report import StopReport

TREE_REFRESH_INTERVAL = 2.0
"""Seconds between updates of the process tree."""
EXIT_POLL_INTERVAL = 0.02
"""Seconds between checks for remaining processes during shutdown."""
TERM_TIMEOUT = 5.0
"""Seconds between SIGTERM and SIGKILL after the graceful shutdown."""
KILL_TIMEOUT = 5.0
"""Seconds after SIGKILL, for a busy system to end the processes."""
HURRIED_TIMEOUT = 1.0
"""Seconds for each step of a hurried shutdown; all three must fit into five seconds."""
CLEANUP_TIMEOUT = 20.0
"""Seconds for the command that removes a container; podman waits 10 s before it kills the container."""
ORPHAN_TIMEOUT = 1.0
"""Seconds for the other processes to exit after the main process."""


class EngineProcess:
    """A running server process and its log, created by `start`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        cleanup: Sequence[str],
        log: LogCapture,
        clock: Clock,
    ) -> None:
        self.argv = tuple(argv)
        self.environment = environment
        self.pid = process.pid
        """Pid of the server's main process, the leader of its process group."""
        self._cleanup = cleanup
        self.log = log
        self.exited = asyncio.Event()
        self._process = process
        self._clock = clock
        self._tree = ProcessTree(process.pid)
        self._tasks: list[asyncio.Task[None]] = []
        self._pipe: asyncio.ReadTransport | None = None
        self._watchdog_socket: socket.socket | None = None
        self._output_ended = asyncio.Event()
        self._hurried = False

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: LogCapture,
        clock: Clock,
        cwd: str | None = None,
        cleanup: Sequence[str] = (),
    ) -> EngineProcess:
        """Run a command in `cwd` with `env` added to the environment; EngineError if it cannot be run.

        `cleanup` is a command to run after the process has exited, within `CLEANUP_TIMEOUT`.
        """
        environment = {**engine_environment(os.environ), **env}
        our_end, engine_end = socket.socketpair()
        read_end, write_end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *_watchdog_argv(),
                stdin=engine_end.fileno(),
                stdout=write_end,
                stderr=write_end,
                env=environment,
                cwd=cwd,
                start_new_session=True,
            )
        except BaseException as error:
            os.close(read_end)
            our_end.close()
            if isinstance(error, OSError):
                raise EngineError(f"cannot run {argv[0]}: {error.strerror}") from error
            raise
        finally:
            engine_end.close()
            os.close(write_end)
        started = cls(process, argv, environment=environment, cleanup=cleanup, log=log, clock=clock)
        await started._attach(read_end, our_end)
        return started

    async def _attach(self, read_end: int, watchdog_socket: socket.socket) -> None:
        watchdog_socket.setblocking(False)
        self._watchdog_socket = watchdog_socket
        loop = asyncio.get_running_loop()
        try:
            pipe = os.fdopen(read_end, "rb", buffering=0)
            self._pipe, _ = await loop.connect_read_pipe(lambda: _Output(self.log, self._output_ended), pipe)
            with suppress(OSError):  # it exited, which is noticed below
                await loop.sock_sendall(watchdog_socket, watchdog.request_of(self.argv, self._cleanup))
        except BaseException:
            self.kill_now()
            raise
        self._tasks = [asyncio.create_task(self._wait()), asyncio.create_task(self._refresh_tree())]

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    def exit_description(self) -> str:
        """Return how the process ended: `exited with status 1`, `was killed by SIGKILL`."""
        code = self.returncode
        if code is None:
            return "is still running"
        if code >= 0:
            return f"exited with status {code}"
        text = f"was killed by {signal.Signals(-code).name}"
        return f"{text} (out of memory? see dmesg)" if -code == signal.SIGKILL else text

    async def stop(self, timeout: float, *, first: signal.Signals = signal.SIGINT) -> StopReport:
        """Send `first` to the main process, then SIGTERM and SIGKILL to all, until none is left."""
        start = self._clock.now()
        self._tree.refresh()
        sent: list[str] = []
        steps = [
            (first, self._tree.signal_leader, timeout),
            (signal.SIGTERM, self._tree.signal_all, TERM_TIMEOUT),
            (signal.SIGKILL, self._tree.signal_all, KILL_TIMEOUT),
        ]
        for number, send, seconds in steps if self.returncode is None else steps[1:]:
            if not self._tree.living():
                break
            send(number)
            sent.append(number.name)
            await self._wait_for_exit(seconds, after=number)
        left = tuple(each.pid for each in self._tree.living())
        await self._close()
        await self._run_cleanup()
        seconds = self._clock.now() - start
        return StopReport(seconds=seconds, signals=tuple(sent), exit_code=self.returncode, leftover_pids=left)

    async def _run_cleanup(self) -> None:
        if not self._cleanup:
            return
        with suppress(OSError, TimeoutError):
            devnull = asyncio.subprocess.DEVNULL
            cleanup = await asyncio.create_subprocess_exec(
                *self._cleanup, stdin=devnull, stdout=devnull, stderr=devnull
            )
            try:
                await asyncio.wait_for(cleanup.wait(), CLEANUP_TIMEOUT)
            finally:
                if cleanup.returncode is None:
                    cleanup.kill()

    def hurry(self) -> None:
        """Limit each step of `stop` to HURRIED_TIMEOUT, also of a shutdown in progress."""
        self._hurried = True

    def kill_now(self) -> None:
        """Kill all processes immediately, without waiting for them."""
        self._tree.signal_all(signal.SIGKILL)

    async def _wait_for_exit(self, seconds: float, *, after: signal.Signals) -> None:
        start = self._clock.now()
        deadline = start + seconds
        had_leader = self.returncode is None and after is not signal.SIGKILL
        while self._tree.living() and self._clock.now() < deadline:
            await self._clock.sleep_until(self._clock.now() + EXIT_POLL_INTERVAL)
            if self._hurried:
                deadline = min(deadline, start + HURRIED_TIMEOUT)
            if had_leader and self.returncode is not None:  # orphans rarely exit by themselves
                had_leader, deadline = False, min(deadline, self._clock.now() + ORPHAN_TIMEOUT)

    async def _close(self) -> None:
        """Stop the watchdog, the log reader and the tasks, after which no event loop is needed."""
        await self._release_watchdog()
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):  # an escaped descendant may keep the pipe open forever
                await self._process.wait()
                await self._output_ended.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._pipe is not None:
            self._pipe.close()
        self.log.end()

    async def _release_watchdog(self) -> None:
        end, self._watchdog_socket = self._watchdog_socket, None
        if end is None:
            return
        with suppress(OSError, TimeoutError):
            end.send(watchdog.ALL_DONE)
            async with asyncio.timeout(1.0):
                await asyncio.get_running_loop().sock_recv(end, 1)  # returns when the watchdog exits
        end.close()

    async def _wait(self) -> None:
        await self._process.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._output_ended.wait()  # the last lines often have the reason
        self.exited.set()

    async def _refresh_tree(self) -> None:
        at = self._clock.now()
        while True:
            await asyncio.to_thread(self._tree.refresh)
            at = max(at + TREE_REFRESH_INTERVAL, self._clock.now())
            await self._clock.sleep_until(at)


class _Output(asyncio.Protocol):
    def __init__(self, log: LogCapture, ended: asyncio.Event) -> None:
        self._log = log
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        self._log.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._ended.set()


def _watchdog_argv() -> list[str]:
    """Return the command line of the watchdog, which becomes the engine."""
    watchdog = package_path("servetop.engines", "process/watchdog.py")
    return [*python_argv("-I", "-S", str(watchdog))]
