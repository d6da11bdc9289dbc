"""A run in a process of its own, as the process sees it that started it and owns it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING

from servetop.core.clock import MonotonicClock
from servetop.core.config import RunConfig, to_data
from servetop.core.errors import ExitCode, RecordingError, ServetopError
from servetop.run.process.owner_pipe import AWAIT_FRAME, HANG_UP, RELEASE, SHOWN, THROW_AWAY

if TYPE_CHECKING:
    from servetop.recordings.read.reader import RecordingReader

OPEN_TIMEOUT = 15.0
"""Seconds within which the run process must have begun to record."""
LOOK_AGAIN = 0.01
"""Seconds between two looks for the new recording."""


_MOST_HEARD = 1 << 16
"""Bytes of what a run process says that are read at once."""


def stderr_file() -> IO[str]:
    """Where a run process can say something when no disk takes it; a temporary file where there is no such place."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("servetop"), "w+", encoding="utf-8")
    return tempfile.TemporaryFile("w+", encoding="utf-8")


class RunNotStarted(ServetopError):
    """The run process ended before it recorded; with its own exit code where that is one of servetop's."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        with contextlib.suppress(ValueError):
            self.exit_code = ExitCode(code)


class RunKilled(ServetopError):
    """The run process ended without closing its recording."""


class OwnedRun:
    """The run ends when this process does, unless it was released; made by `start`."""

    def __init__(self, process: subprocess.Popen[bytes], recording: Path, stderr: IO[str]) -> None:
        self.recording = recording
        self._process = process
        self._stderr = stderr
        self._heard = 0

    @classmethod
    def start(
        cls,
        config: RunConfig,
        recording: Path,
        *,
        stderr: IO[str],
        resume: bool = False,
        throw_away: bool = False,
        await_frame: bool = False,
    ) -> OwnedRun:
        """In a session of its own, so that only its owner decides what a closed terminal means for it.

        What it has to say goes to `stderr`; `throw_away`: its recording is in a folder that is removed with it;
        `await_frame`: it records at once, and starts engine and senders when it is told that a frame is `shown`.
        """
        given = {"--resume": resume, THROW_AWAY: throw_away, AWAIT_FRAME: await_frame}
        flags = [name for name, wanted in given.items() if wanted]
        process = subprocess.Popen(
            [sys.executable, "-m", "servetop.run.process.run_process", str(recording), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
            bufsize=0,
        )
        run = cls(process, recording, stderr)
        run._say(json.dumps(to_data(config)).encode())
        return run

    @property
    def pid(self) -> int:
        """Of the run process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """The run process is gone."""
        return self._process.poll() is not None

    def shown(self) -> None:
        """Say that the first frame is drawn."""
        self._say(SHOWN)

    def release(self) -> None:
        """Let the run go on without an owner."""
        self._say(RELEASE)

    def signal(self, number: signal.Signals) -> None:
        """SIGTERM drains, SIGINT and a second SIGTERM cancel."""
        self._process.send_signal(number)

    def end_with_terminal(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGHUP: let the run drain, and end."""
        del frame
        self._say(HANG_UP)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def wait(self) -> int:
        """The run's exit code, once it has ended; RunKilled when a signal ended its process."""
        code = self._process.wait()
        self._close()
        if code < 0:
            name = signal.Signals(-code).name
            raise RunKilled(f"the run process was killed by {name}: the recording ends with its last tick")
        return code

    async def opened(self) -> RecordingReader:
        """A reader of its recording; RunNotStarted with the run process's last words when it ends before that."""
        from servetop.recordings.read.reader import RecordingReader

        clock = MonotonicClock()
        while clock.now() < OPEN_TIMEOUT:
            try:
                return RecordingReader.open(self.recording)
            except RecordingError:
                if self.ended:
                    raise self._not_started(self._process.returncode) from None
            await clock.sleep_until(clock.now() + LOOK_AGAIN)
        self._process.terminate()
        raise RecordingError(f"the run did not begin to record to {self.recording} within {OPEN_TIMEOUT:.0f} s")

    def _not_started(self, code: int) -> RunNotStarted:
        self._close()
        if code < 0:
            words = f"the run was ended by {signal.Signals(-code).name} before it began to record"
            return RunNotStarted(words, code=ExitCode.INTERRUPTED)
        return RunNotStarted(self.last_stderr_line(), code=code)

    def said(self) -> list[str]:
        """Lines that the run process has said since the last call."""
        said = os.pread(self._stderr.fileno(), _MOST_HEARD, self._heard)  # the place to write at is the run's
        whole = said[: said.rfind(b"\n") + 1]
        self._heard += len(whole)
        return whole.decode("utf-8", "replace").splitlines()

    def last_stderr_line(self) -> str:
        """The last line that the run process said."""
        self._stderr.seek(0)
        lines = self._stderr.read().strip().splitlines()
        words = lines[-1] if lines else f"the run could not be started (recording: {self.recording})"
        return words.removeprefix("servetop: ")

    def _close(self) -> None:
        """Let go of the owner pipe of a run that has ended."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _say(self, words: bytes) -> None:
        """Write a line to the run's owner pipe; a run that has ended needs none."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # its end is closed, or ours is
            self._process.stdin.write(words + b"\n")
