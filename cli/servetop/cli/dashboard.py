"""The dashboard in front of a run in another process, or of a recording."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from servetop.cli.look import Look, check_theme, end_with_terminal, surroundings
from servetop.core.clock import MonotonicClock
from servetop.core.config import RunConfig, to_data
from servetop.core.errors import ExitCode, RecordingError

if TYPE_CHECKING:
    from servetop.recordings.reader import RecordingReader

OPEN_TIMEOUT = 15.0
"""Seconds within which the run process must have begun to record."""
LOOK_AGAIN = 0.01
"""Seconds between two looks for the new recording."""


def replay_recording(name: str | None, look: Look) -> int:
    """The dashboard on a finished or a growing recording; without a name, on the list of all, over the newest."""
    end_with_terminal()
    gc.disable()  # until all is loaded: a tenth of the time to the first frame
    from servetop.recordings.catalog import resolve
    from servetop.recordings.shelf import RecordingsShelf
    from servetop.tui.app import run_dashboard

    shelf = RecordingsShelf()
    around = surroundings(look, shelf, browse=name is None)
    first = shelf.newest() if name is None else resolve(name)
    try:
        run_dashboard(shelf.open(first), surroundings=around)
    finally:
        shelf.close()
    return int(ExitCode.OK)


def run_with_dashboard(config: RunConfig, recording: Path, *, look: Look, resume: bool = False) -> int:
    """Start the run process, show its recording as it grows, tell how it ended; the run's exit code.

    The run process is started before anything heavy is loaded here: both load at the same time.
    """
    gc.disable()  # until all is loaded
    check_theme(look.theme)
    with tempfile.TemporaryFile("w+") as complaints:
        process = start_run_process(config, recording, complaints=complaints, resume=resume)
        from servetop.recordings.shelf import RecordingsShelf
        from servetop.tui.app import run_dashboard

        reader = asyncio.run(open_when_there(recording, process, complaints=complaints))
        shelf = RecordingsShelf()
        around = surroundings(look, shelf)
        try:
            wish = run_dashboard(reader, owns_run=True, surroundings=around)
        finally:
            shelf.close()
            reader.close()
        if wish == "detach":
            sys.stdout.write(f"The run goes on. Watch it: servetop replay {recording}\n")
            return int(ExitCode.OK)
        if process.poll() is None:
            sys.stderr.write("servetop: finishing the run (Ctrl-C leaves it to finish alone)\n")
        code = process.wait()
    _tell(recording, code)
    return code


def start_run_process(
    config: RunConfig, recording: Path, *, complaints: IO[str], resume: bool
) -> subprocess.Popen[str]:
    """In a session of its own: the run outlives this terminal."""
    argv = [sys.executable, "-m", "servetop.cli.run_process", str(recording)]
    process = subprocess.Popen(
        [*argv, "--resume"] if resume else argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
        start_new_session=True,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(to_data(config)))
    process.stdin.close()
    return process


async def open_when_there(recording: Path, process: subprocess.Popen[str], *, complaints: IO[str]) -> RecordingReader:
    """Its reader; RecordingError with the run process's last words when it ends before that."""
    from servetop.recordings.reader import RecordingReader

    clock = MonotonicClock()
    while clock.now() < OPEN_TIMEOUT:
        try:
            return RecordingReader.open(recording)
        except RecordingError:
            if process.poll() is not None:
                complaints.seek(0)
                lines = complaints.read().strip().splitlines()
                raise RecordingError(_last_words(lines, recording)) from None
        await clock.sleep_until(clock.now() + LOOK_AGAIN)
    process.terminate()
    raise RecordingError(f"the run did not begin to record to {recording} within {OPEN_TIMEOUT:.0f} s")


def _last_words(lines: list[str], recording: Path) -> str:
    words = lines[-1] if lines else f"the run could not be started (recording: {recording})"
    return words.removeprefix("servetop: ")


def _tell(recording: Path, code: int) -> None:
    """The summary on the terminal that the dashboard has left, and the reason of a failure."""
    from servetop.cli.report import print_end, print_recording

    print_recording(str(recording), as_json=False)
    if code:
        print_end(recording)
