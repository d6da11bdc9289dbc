"""An engine's server process: start, log capture, graceful shutdown, and SIGKILL for whatever remains."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from servetop.core.clock import Clock
from servetop.core.errors import EngineError
from servetop.core.system.environment import engine_environment
from servetop.core.system.package_data import package_path
from servetop.engines.process import watchdog
from servetop.engines.process.log_filter import LogCapture
from servetop.engines.process.process_tree import ProcessTree
from servetop.engines.process.stop_report import StopReport

LOOK_EVERY = 2.0
"""Seconds between updates of the process tree."""
CHECK_EVERY = 0.02
"""Seconds between checks for remaining processes during shutdown."""
KILL_PATIENCE = 5.0
"""Seconds for each step (SIGTERM, SIGKILL) after the graceful shutdown."""
HURRIED_PATIENCE = 1.0
"""Seconds for each step of a hurried shutdown; all three must fit into five seconds."""
CLEANUP_PATIENCE = 20.0
"""Seconds for the command that removes a container; podman waits 10 s before it kills."""
ORPHAN_PATIENCE = 1.0
"""Seconds for the other processes to exit after the main process."""


class EngineProcess:
    """A running server process and its log, created by `start`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        argv: Sequence[str],
        *,
        cleanup: Sequence[str],
        log: LogCapture,
        clock: Clock,
    ) -> None:
        self.argv = tuple(argv)
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
        self._leash: socket.socket | None = None
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

        `cleanup` is a command to run after the process has exited, within `CLEANUP_PATIENCE`.
        """
        ours, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *_watchdog_argv(cleanup),
                *argv,
                stdin=theirs.fileno(),
                stdout=write_end,
                stderr=write_end,
                env={**engine_environment(os.environ), **env},
                cwd=cwd,
                start_new_session=True,
            )
        except BaseException as error:
            os.close(read_end)
            ours.close()
            if isinstance(error, OSError):
                raise EngineError(f"cannot run {argv[0]}: {error.strerror}") from error
            raise
        finally:
            theirs.close()
            os.close(write_end)
        started = cls(process, argv, cleanup=cleanup, log=log, clock=clock)
        await started._watch(read_end, ours)
        return started

    async def _watch(self, read_end: int, leash_end: socket.socket) -> None:
        leash_end.setblocking(False)
        self._leash = leash_end
        loop = asyncio.get_running_loop()
        try:
            pipe = os.fdopen(read_end, "rb", buffering=0)
            self._pipe, _ = await loop.connect_read_pipe(lambda: _Output(self.log, self._output_ended), pipe)
        except BaseException:
            self.kill_now()
            raise
        self._tasks = [asyncio.create_task(self._wait()), asyncio.create_task(self._look())]

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    def exit_description(self) -> str:
        """How the process ended: `exited with status 1`, `was killed by SIGKILL`."""
        code = self.returncode
        if code is None:
            return "is still running"
        if code >= 0:
            return f"exited with status {code}"
        words = f"was killed by {signal.Signals(-code).name}"
        return f"{words} (out of memory? see dmesg)" if -code == signal.SIGKILL else words

    async def stop(self, patience: float, *, first: signal.Signals = signal.SIGINT) -> StopReport:
        """Send `first` to the main process, then SIGTERM and SIGKILL to all, until none is left."""
        began = self._clock.now()
        self._tree.refresh()
        sent: list[str] = []
        steps = [
            (first, self._tree.signal_leader, patience),
            (signal.SIGTERM, self._tree.signal_all, KILL_PATIENCE),
            (signal.SIGKILL, self._tree.signal_all, KILL_PATIENCE),
        ]
        for number, send, seconds in steps if self.returncode is None else steps[1:]:
            if not self._tree.living():
                break
            send(number)
            sent.append(number.name)
            await self._gone_within(seconds)
        left = tuple(each.pid for each in self._tree.living())
        await self._let_go()
        await self._clean_up()
        seconds = self._clock.now() - began
        return StopReport(seconds=seconds, signals=tuple(sent), exit_code=self.returncode, leftover_pids=left)

    async def _clean_up(self) -> None:
        if not self._cleanup:
            return
        with suppress(OSError, TimeoutError):
            nothing = asyncio.subprocess.DEVNULL
            ran = await asyncio.create_subprocess_exec(*self._cleanup, stdin=nothing, stdout=nothing, stderr=nothing)
            try:
                await asyncio.wait_for(ran.wait(), CLEANUP_PATIENCE)
            finally:
                if ran.returncode is None:
                    ran.kill()

    def hurry(self) -> None:
        """Limit each step of `stop` to HURRIED_PATIENCE, also of a shutdown in progress."""
        self._hurried = True

    def kill_now(self) -> None:
        """Kill all processes immediately, without waiting for them."""
        self._tree.signal_all(signal.SIGKILL)

    async def _gone_within(self, seconds: float) -> None:
        began = self._clock.now()
        until = began + seconds
        led = self.returncode is None
        while self._tree.living() and self._clock.now() < until:
            await self._clock.sleep_until(self._clock.now() + CHECK_EVERY)
            if self._hurried:
                until = min(until, began + HURRIED_PATIENCE)
            if led and self.returncode is not None:  # orphans will hardly end by themselves
                led, until = False, min(until, self._clock.now() + ORPHAN_PATIENCE)

    async def _let_go(self) -> None:
        """Stop the watchdog, the log reader and the tasks, after which no event loop is needed."""
        await self._release_leash()
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):  # an escaped descendant may hold the pipe for ever
                await self._process.wait()
                await self._output_ended.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._pipe is not None:
            self._pipe.close()
        self.log.end()

    async def _release_leash(self) -> None:
        end, self._leash = self._leash, None
        if end is None:
            return
        with suppress(OSError, TimeoutError):
            end.send(watchdog.ALL_DONE)
            async with asyncio.timeout(1.0):
                await asyncio.get_running_loop().sock_recv(end, 1)  # ends when the watcher has
        end.close()

    async def _wait(self) -> None:
        await self._process.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._output_ended.wait()  # its last words are often the reason
        self.exited.set()

    async def _look(self) -> None:
        at = self._clock.now()
        while True:
            await asyncio.to_thread(self._tree.refresh)
            at = max(at + LOOK_EVERY, self._clock.now())
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


def _watchdog_argv(cleanup: Sequence[str]) -> list[str]:
    """Return the command line of the watchdog up to the engine's own command."""
    watchdog = package_path("servetop.engines", "process/watchdog.py")
    return [sys.executable, "-I", "-S", str(watchdog), json.dumps(cleanup)]
