"""The command of --on-finish, which runs once when a run has ended and its recording is closed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from servetop.core.errors import RecordingError, system_reason
from servetop.core.system.environment import engine_environment
from servetop.engines.process.watchdog import stop_group
from servetop.run import console

if TYPE_CHECKING:
    from servetop.recordings.write.recorder import Recorder

LIMIT_SECONDS = 60.0
"""Time for the command; after it, the command and all that it started are stopped."""
ON_FINISH = "--on-finish"
"""The beginning of the line that says why the command failed."""
_STDERR = 2


def run_on_finish(command: Sequence[str], recorder: Recorder, *, exit_code: int, quiet: bool = False) -> None:
    """Run a command, without a shell, with the result of the run in its environment; a failure is one line on stderr.

    What the command prints goes to stderr, or with `quiet` nowhere. The recorder is closed.
    """
    if not command:
        return
    results = {
        "SERVETOP_RECORDING": str(recorder.path.absolute()),
        "SERVETOP_EXIT_CODE": str(exit_code),
        "SERVETOP_HEADLINE": _headline(recorder),
    }
    try:
        failure = _failure(command, {**engine_environment(os.environ), **results}, quiet=quiet)
    except (OSError, ValueError) as error:  # ValueError: a null character
        failure = f"cannot be started ({system_reason(error) if isinstance(error, OSError) else error})"
    if failure:
        console.message(f"{ON_FINISH}: {command[0]} {failure}")


def _headline(recorder: Recorder) -> str:
    """Return the verdict of the run in one sentence; empty if it has none."""
    try:
        with contextlib.closing(recorder.reader()) as reader:
            return reader.quick_results().verdict
    except RecordingError:
        return ""


def _failure(command: Sequence[str], environment: Mapping[str, str], *, quiet: bool) -> str:
    """Run the command to its end; return why it failed, or nothing. OSError if it cannot be started."""
    output = subprocess.DEVNULL if quiet else _stderr()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        start_new_session=True,
    )
    try:
        code = process.wait(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        stop_group(process.pid)
        process.wait()
        return f"was killed, because it did not end within {LIMIT_SECONDS:.0f} s"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}" if code else ""


def _stderr() -> int:
    """Return the file descriptor of stderr, or what discards all output if it was closed."""
    try:
        os.fstat(_STDERR)
    except OSError:
        return subprocess.DEVNULL
    return _STDERR
