"""A run in a separate process, as its owner sees it: the process that started it."""

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
from servetop.core.system.own_python import python_argv
from servetop.run.process.execution import Execution
from servetop.run.process.owner_pipe import AWAIT_FRAME, HANG_UP, RELEASE, SHOWN, THROW_AWAY

if TYPE_CHECKING:
    from servetop.recordings.read.reader import RecordingReader

OPEN_TIMEOUT = 15.0
"""Seconds within which the run process must start to record."""
POLL_SECONDS = 0.01
"""Seconds between two checks for the new recording."""
_READ_BYTES = 1 << 16
"""Bytes of stderr that are read at once."""


def stderr_file() -> IO[str]:
    """Return a file in memory for the stderr of a run process, which works with a full disk; else a temporary file."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("servetop"), "w+", encoding="utf-8")
    return tempfile.TemporaryFile("w+", encoding="utf-8")


class RunNotStarted(ServetopError):
    """The run process ended before it started to record; has its exit code if that is one of servetop's."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        with contextlib.suppress(ValueError):
            self.exit_code = ExitCode(code)


class RunKilled(ServetopError):
    """The run process ended without closing its recording."""


class OwnedRun:
    """A run that ends with this process unless it is released; created by `start`."""

    def __init__(self, process: subprocess.Popen[bytes], recording: Path, stderr: IO[str]) -> None:
        self.recording = recording
        self._process = process
        self._stderr = stderr
        self._read = 0

    @classmethod
    def start(
        cls,
        config: RunConfig,
        recording: Path,
        *,
        stderr: IO[str],
        execution: Execution | None = None,
        await_frame: bool = False,
    ) -> OwnedRun:
        """Start a run in a session of its own, so that a closed terminal does not end it.

        With `await_frame` it starts to record at once, but starts engine and senders only after `shown`. The port of
        its metrics is closed in this process.
        """
        how = execution or Execution()
        given = {"--resume": how.resume, THROW_AWAY: how.throw_away, AWAIT_FRAME: await_frame}
        flags = [name for name, wanted in given.items() if wanted]
        process = subprocess.Popen(
            python_argv("-m", "servetop.run.run_process", str(recording), *flags),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
            bufsize=0,
            pass_fds=how.inherited,
        )
        run = cls(process, recording, stderr)
        setup = {"config": to_data(config), "command_line": ["servetop", *sys.argv[1:]], **how.setup}
        run._send(json.dumps(setup).encode())
        if how.metrics is not None:
            how.metrics.close()
        return run

    @property
    def pid(self) -> int:
        """The process id of the run process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the run process has ended."""
        return self._process.poll() is not None

    def shown(self) -> None:
        """Report that the first frame is drawn."""
        self._send(SHOWN)

    def release(self) -> None:
        """Let the run continue without an owner."""
        self._send(RELEASE)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal: SIGTERM drains, SIGINT and a second SIGTERM cancel."""
        self._process.send_signal(number)

    def end_with_terminal(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGHUP: let the run drain, and end this process."""
        del frame
        self._send(HANG_UP)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def wait(self) -> int:
        """Wait for the end of the run; return its exit code. RunKilled if a signal ended its process."""
        code = self._process.wait()
        self._close()
        if code < 0:
            name = signal.Signals(-code).name
            raise RunKilled(f"the run process was killed by {name}: the recording ends with its last tick")
        return code

    async def opened(self) -> RecordingReader:
        """Return a reader of the recording, once it exists; RunNotStarted if the run ends first."""
        from servetop.recordings.read.reader import RecordingReader

        clock = MonotonicClock()
        while clock.now() < OPEN_TIMEOUT:
            try:
                return RecordingReader.open(self.recording)
            except RecordingError:
                if self.ended:
                    raise self._not_started(self._process.returncode) from None
            await clock.sleep_until(clock.now() + POLL_SECONDS)
        self._process.terminate()
        raise RecordingError(f"the run did not start to record to {self.recording} within {OPEN_TIMEOUT:.0f} s")

    def _not_started(self, code: int) -> RunNotStarted:
        self._close()
        if code < 0:
            reason = f"the run was ended by {signal.Signals(-code).name} before it started to record"
            return RunNotStarted(reason, code=ExitCode.INTERRUPTED)
        return RunNotStarted(self.last_stderr_line(), code=code)

    def new_stderr_lines(self) -> list[str]:
        """Return the lines that the run process has written to stderr since the last call."""
        data = os.pread(self._stderr.fileno(), _READ_BYTES, self._read)  # keeps the file position
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        return whole.decode("utf-8", "replace").splitlines()

    def lines_about(self, beginning: str) -> list[str]:
        """Return all messages on stderr that begin with a text, without the name of the program."""
        self._stderr.seek(0)
        lines = (line.removeprefix("servetop: ") for line in self._stderr.read().splitlines())
        return [line for line in lines if line.startswith(beginning)]

    def last_stderr_line(self) -> str:
        """Return the last line that the run process wrote to stderr."""
        self._stderr.seek(0)
        lines = self._stderr.read().strip().splitlines()
        line = lines[-1] if lines else f"the run could not be started (recording: {self.recording})"
        return line.removeprefix("servetop: ")

    def _close(self) -> None:
        """Close the owner pipe of a run that has ended."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _send(self, line: bytes) -> None:
        """Write a line to the owner pipe; does nothing if the run has ended."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # its end is closed, or ours is
            self._process.stdin.write(line + b"\n")
