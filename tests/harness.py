"""The servetop command, run as a user would run it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import psutil

from servetop.cli.main import main
from servetop.core.errors import RecordingError
from servetop.recordings.read.reader import RecordingReader

RAN = (0, 99)
"""Exit codes of a run that went well: by 99 it says that this machine was too busy to keep the load's times."""


PYTHON = shlex.quote(sys.executable)
"""The interpreter as a word of `--engine-command`."""
SLOW_MACHINE = 6
"""How much slower than a quiet machine one may be before a test takes waiting for a hang."""


@dataclass(frozen=True)
class Finished:
    """What a servetop command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads(self.out)
        return summary

    @property
    def complaint(self) -> str:
        """The one line that says what went wrong."""
        lines = [line for line in self.err.splitlines() if line.startswith("servetop: ")]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0].removeprefix("servetop: ")


def folders_in(folder: Path) -> dict[str, str]:
    """The variables that give a command a recordings folder of its own."""
    return {"SERVETOP_RECORDINGS": str(folder), "XDG_STATE_HOME": f"{folder}-state"}


class Servetop:
    """The command line, with a recordings folder of its own."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = {**os.environ, **folders_in(folder), **(environment or {})}

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "servetop", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            process.stderr.close()

    def __call__(self, *words: str, timeout: float = 540.0) -> Finished:
        with self.started(*words) as process:
            out, err = process.communicate(timeout=timeout)
        return Finished(process.returncode, out, err)


class CommandInProcess:
    """The command line in this process: for commands that start no other one, a second less each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str) -> Finished:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with (
            mock.patch.dict(os.environ, folders_in(self.folder)),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main(words)
        for stream in (out, err):
            stream.seek(0)
        return Finished(code, out.read(), err.read())


_Found = TypeVar("_Found")


def wait_for(condition: Callable[[], _Found | None], *, seconds: float, what: str) -> _Found:
    """The condition's first true value; the test fails when none comes in time.

    `seconds` are those of a quiet machine: a loaded one gets SLOW_MACHINE times as long before that counts as a hang.
    """
    deadline = time.monotonic() + seconds * SLOW_MACHINE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds * SLOW_MACHINE} s"
        time.sleep(0.02)
    return value


def command_line(process: psutil.Process) -> list[str]:
    """The words of a process's command line; none of one that has ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def opened(recording: Path) -> RecordingReader | None:
    """A reader, once there is something to read."""
    with contextlib.suppress(RecordingError):
        return RecordingReader.open(recording)
    return None


def received(reader: RecordingReader) -> bool:
    """Tokens have come in."""
    return any(tick.client.output_tokens for tick in reader.ticks())


def answers(url: str) -> bool:
    """Somebody says 200 there."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def printed_url(server: subprocess.Popen[str]) -> str:
    """The address that a server says it has chosen."""
    assert server.stderr is not None
    line = next(line for line in server.stderr if " server on http://" in line)
    return line.split()[-1]


def run_python(code: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter, which must exit with 0."""
    argv, variables = [sys.executable, "-c", code], {**os.environ, **(environment or {})}
    return subprocess.run(argv, capture_output=True, text=True, check=True, env=variables)
