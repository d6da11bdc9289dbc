"""Runs the command of `--on-episode`: for each server one process after the other, bounded in number and in time."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from servetop.analysis.fleet.server_episodes import EpisodeChange
from servetop.core.errors import UsageError, system_reason
from servetop.core.system.environment import engine_environment
from servetop.core.text.sanitize import sanitize_line

LONGEST = 30.0
"""Seconds after which a process is killed, with its group."""
AT_ONCE = 8
"""Processes that run at the same time at most, of all servers together."""
MOST_WAITING = 16
"""Changes of a server that wait at most; of more, an episode that is over is left out."""
MOST_NOTES = 20
"""Different failures that are noted."""
_TAIL = 2000
"""Bytes of the standard error output that are kept."""


def command_words(text: str) -> list[str]:
    """Return the words of a command; UsageError if there are none, or for a program that does not exist."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--on-episode {text!r}: {error}: quote it as for a shell") from error
    if not words:
        raise UsageError("--on-episode: the command is empty: give a program with its arguments")
    if shutil.which(words[0]) is None:
        raise UsageError(f"--on-episode: cannot run {words[0]!r}: give the path of a program, or one on PATH")
    return words


def environment_of(change: EpisodeChange, *, origin: float) -> dict[str, str]:
    """Return the variables that describe a change; `origin` is the Unix time of second 0."""
    since = datetime.fromtimestamp(origin + change.since, tz=UTC).isoformat(timespec="seconds")
    return {
        "SERVETOP_EPISODE_STATE": "begins" if change.begins else "ends",
        "SERVETOP_EPISODE_KIND": change.kind,
        "SERVETOP_EPISODE_SERVER": change.name,
        "SERVETOP_EPISODE_URL": change.url,
        "SERVETOP_EPISODE_SINCE": since,
        "SERVETOP_EPISODE_TEXT": change.text,
    }


class EpisodeCommands:
    """Runs the command for each change; `note` receives each different failure once."""

    def __init__(
        self, words: Sequence[str], *, origin: float, note: Callable[[str], None], longest: float = LONGEST
    ) -> None:
        self._words, self._origin, self._longest = words, origin, longest
        self._note = note
        self._noted: set[str] = set()
        self._free = asyncio.Semaphore(AT_ONCE)
        self._waiting: dict[int, deque[EpisodeChange]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def add(self, change: EpisodeChange) -> None:
        """Run the command for a change, as soon as that for the one before it of the same server has ended."""
        waiting = self._waiting.setdefault(change.number, deque())
        waiting.append(change)
        if len(waiting) > MOST_WAITING:
            first = 0 if waiting[0].begins else 1
            del waiting[first + 1], waiting[first]
            self._note_once(f"{change.name}: its state changes faster than the command ends: not run for each change")
        if change.number not in self._tasks:
            self._tasks[change.number] = asyncio.create_task(self._run_waiting(change.number))

    async def close(self, *, seconds: float) -> None:
        """Wait for what runs or waits, at most `seconds`; then kill it."""
        tasks = list(self._tasks.values())
        if not tasks:
            return
        _, left = await asyncio.wait(tasks, timeout=seconds)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
            self._note_once("the watch ended before the command: killed")

    async def _run_waiting(self, number: int) -> None:
        waiting = self._waiting[number]
        while waiting:
            async with self._free:
                await self._run(waiting.popleft())
        del self._tasks[number]

    async def _run(self, change: EpisodeChange) -> None:
        environment = {**engine_environment(os.environ), **environment_of(change, origin=self._origin)}
        errors = _Tail()
        try:
            code = await self._exit_code(environment, errors)
        except OSError as error:
            self._note_once(f"cannot run {self._words[0]!r}: {system_reason(error)}")
            return
        finally:
            errors.close()
        reason = f": {errors.last_line}" if errors.last_line else ""
        if code is None:
            self._note_once(f"{self._words[0]} had not ended after {self._longest:g} s and was killed{reason}")
        elif code:
            ended = f"exited with status {code}" if code > 0 else f"was killed by {signal.Signals(-code).name}"
            self._note_once(f"{self._words[0]} {ended}{reason}")

    async def _exit_code(self, environment: Mapping[str, str], errors: _Tail) -> int | None:
        """Run one process to its end; None if it had to be killed. OSError if it cannot be started."""
        devnull = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *self._words,
            env=environment,
            stdin=devnull,
            stdout=devnull,
            stderr=errors.write_end,
            start_new_session=True,
        )
        errors.started()
        try:
            return await asyncio.wait_for(process.wait(), self._longest)
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()

    def _note_once(self, text: str) -> None:
        if text in self._noted or len(self._noted) > MOST_NOTES:
            return
        self._noted.add(text)
        more = len(self._noted) > MOST_NOTES
        self._note("further failures are not noted" if more else text)


class _Tail:
    """The end of what a process writes to a pipe, read while it runs; a process that outlives it does not matter."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._kept = b""
        self._open = True
        asyncio.get_running_loop().add_reader(self._read_end, self._read)

    @property
    def last_line(self) -> str:
        """The last line that is not empty, safe to show."""
        lines = [line for line in self._kept.decode(errors="replace").splitlines() if line.strip()]
        return sanitize_line(lines[-1].strip()) if lines else ""

    def started(self) -> None:
        """Leave the writing end to the process."""
        os.close(self.write_end)
        self.write_end = -1

    def close(self) -> None:
        """Read what is left, and close the pipe."""
        if self.write_end >= 0:
            self.started()
        for _ in range(2):  # what a pipe holds; a process that is left behind may write for ever
            if self._open:
                self._read()
        asyncio.get_running_loop().remove_reader(self._read_end)
        os.close(self._read_end)

    def _read(self) -> None:
        try:
            data = os.read(self._read_end, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._read_end)
        self._kept = (self._kept + data)[-_TAIL:]
