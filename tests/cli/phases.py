"""Brings runs of the whole command into a phase, and checks what is left of them afterwards."""

from __future__ import annotations

import contextlib
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from servetop.core.events import Action, RunEnd
from servetop.recordings.read.reader import RecordingReader
from tests.cli.terminal import Terminal
from tests.harness import PYTHON, Servetop, opened, received, wait_for

SLOW_TO_BOOT = ("--engine-command", f'{PYTHON} -c "import signal; signal.pause()"')
SLOW_TO_RESTART = Path(__file__).parent / "engine_that_restarts_slowly.py"
STUBBORN = (
    "--engine-command",
    f"{PYTHON} -c 'import signal; [signal.signal(each, signal.SIG_IGN) for each in (2, 15)]; signal.pause()'",
)
"""An engine that does not end before it is killed."""
LOAD = ("--request-rate", "8", "--duration", "300")
SHORT, LONG = ("--output-len", "40"), ("--output-len", "1500")
"""Responses that finish while a run drains, and responses that take longer than any limit."""


def words_for(phase: str) -> tuple[str, ...]:
    match phase:
        case "boot":
            return (*LOAD, *SLOW_TO_BOOT)
        case "engine stop":
            return (*LOAD, *STUBBORN)
        case "restart":
            engine = ("--engine", "vllm", "--engine-command", f"{PYTHON} {shlex.quote(str(SLOW_TO_RESTART))}")
            return (*LOAD, *engine, "--max-num-seqs", "64", *SHORT)
        case _:
            return (*LOAD, *SHORT)


def until(phase: str, reader: RecordingReader) -> None:
    """Wait for a phase, after bringing it about."""
    if phase == "boot":
        wait_for(lambda: len(reader.ticks()) > 2, seconds=120, what="the boot")
        return
    wait_for(lambda: received(reader), seconds=120, what="the first tokens")
    if phase == "restart":
        reader.send(Action.SET_MAX_NUM_SEQS, value=32)
        wait_for(lambda: _is_restarting(reader), seconds=120, what="the restart")


def _is_restarting(reader: RecordingReader) -> bool:
    return any(note.text.endswith("restarting the engine") for note in reader.notes())


def family(pid: int) -> list[psutil.Process]:
    """A process and all that it started."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def ignores_sigterm(process: psutil.Process) -> bool:
    """Whether a process is the stubborn engine, and ignores the signal already."""
    try:
        stubborn = "SIG_IGN" in " ".join(process.cmdline())
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    except (psutil.Error, OSError):
        return False
    (mask,) = re.findall(r"^SigIgn:\s*([0-9a-f]+)", status, re.MULTILINE)
    return stubborn and bool(int(mask, 16) >> (signal.SIGTERM - 1) & 1)


def end_of(recording: Path) -> RunEnd | None:
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        return reader.end


def assert_gone(processes: list[psutil.Process]) -> None:
    """Wait until all have ended; a zombie counts as ended."""
    wait_for(lambda: not any(_lives(each) for each in processes), seconds=120, what="the end of all processes")


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def dashboard(servetop: Servetop, recording: Path, *words: str) -> Iterator[Terminal]:
    argv = [sys.executable, "-m", "servetop", *words, "--record", str(recording)]
    with Terminal.run(argv, servetop.environment) as terminal:
        yield terminal


@contextlib.contextmanager
def reading(recording: Path) -> Iterator[RecordingReader]:
    with contextlib.closing(wait_for(lambda: opened(recording), seconds=120, what="the recording")) as reader:
        yield reader
