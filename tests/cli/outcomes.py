"""Produces each outcome of the table in docs/reference/exit-codes.md with the whole command."""

from __future__ import annotations

import contextlib
import resource
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from servetop.recordings.read.reader import RecordingReader
from tests.harness import PYTHON, Finished, Servetop, opened, received, wait_for
from tests.reserved_port import reserved_port

MORTAL = Path(__file__).parent / "mortal_server.py"
LENGTHS = ("--input-len", "8", "--output-len", "4")
LOAD = ("--request-rate", "inf", "--num-prompts", "20", *LENGTHS)
ENDLESS = ("--request-rate", "5", "--duration", "300", *LENGTHS)
SWEEP = "max_num_seqs = [1, 2]\nrequest_rate = [20]\n{end}\n[workload]\ninput_len = 8\noutput_len = 4\n"
SECONDS = 90


@dataclass(frozen=True)
class Case:
    """Where a case happens."""

    servetop: Servetop
    folder: Path

    @property
    def recording(self) -> Path:
        return self.folder / "night" / "run.servetop"

    def run(self, *words: str) -> Finished:
        return self.servetop(*words, "--record", str(self.recording))

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        with self.servetop.started(*words, "--record", str(self.recording)) as process:
            yield process

    @contextlib.contextmanager
    def reading(self) -> Iterator[RecordingReader]:
        reader = wait_for(lambda: opened(self.recording), seconds=SECONDS, what="the recording")
        with contextlib.closing(reader):
            yield reader

    def found(self) -> Path:
        """Where the recording is now."""
        return next(self.folder.glob("*/*.servetop"), self.recording)

    def sweep(self, end: str) -> tuple[str, ...]:
        """Two cells, with a restart of the engine between them."""
        file = self.folder / "sweep.toml"
        file.write_text(SWEEP.format(end=end))
        return ("sweep", str(file), "--json")


def mortal(*words: str) -> tuple[str, ...]:
    """Options that start the failing engine."""
    command = " ".join([PYTHON, shlex.quote(str(MORTAL)), *words])
    return ("--engine", "vllm", "--model", "a/tiny", "--engine-command", command)


def finished(process: subprocess.Popen[str]) -> Finished:
    out, err = process.communicate(timeout=SECONDS)
    return Finished(process.returncode, out, err)


def with_engine(*words: str, load: tuple[str, ...] = LOAD) -> Callable[[Case], Finished]:
    return lambda case: case.run("--json", *mortal(*words), *load)


# --- the engine ---


def attached_engine_gone(case: Case) -> Finished:
    with reserved_port() as port, _mortal_engine(port) as engine:
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: _listens(port), seconds=SECONDS, what="the engine")
        with case.started("--json", "--url", url, *ENDLESS) as process:
            with case.reading() as reader:
                wait_for(lambda: received(reader), seconds=SECONDS, what="the first tokens")
            engine.kill()
            return finished(process)


@contextlib.contextmanager
def _mortal_engine(port: int) -> Iterator[subprocess.Popen[bytes]]:
    engine = subprocess.Popen([sys.executable, str(MORTAL), "--port", str(port)])
    try:
        yield engine
    finally:
        engine.kill()
        engine.wait()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def nothing_answers(case: Case) -> Finished:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return case.run("--json", "--url", f"http://127.0.0.1:{free.getsockname()[1]}", *LOAD)


def between_cells(case: Case) -> Finished:
    return case.run(*case.sweep("num_prompts = 4"), *mortal("--die-after 4"))


# --- the disk ---


def full_at_the_start(case: Case) -> Finished:
    """No file may grow: as root too, whom a full disk stops as it does others."""
    limited = "import os, resource as r, sys; r.setrlimit(r.RLIMIT_FSIZE, (0, 0)); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-m", "servetop", "--json", *mortal(), *LOAD, "--record", str(case.recording)]
    done = subprocess.run(
        [sys.executable, "-c", limited, *words], env=case.servetop.environment, capture_output=True, text=True
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def full(process: subprocess.Popen[str], size: int = 1) -> None:
    """The largest size in bytes of a file that a process may write."""
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


STEADY = ("--request-rate", "10", "--num-prompts", "20", *LENGTHS)


def full_in_the_middle(case: Case) -> Finished:
    with case.started("--json", *mortal(), *STEADY) as process:
        with case.reading() as reader:
            wait_for(lambda: received(reader), seconds=SECONDS, what="the first tokens")
        full(process)
        return finished(process)


def full_for_a_while(case: Case) -> Finished:
    with case.started("--json", *mortal(), *STEADY) as process:
        with case.reading() as reader:
            wait_for(lambda: received(reader), seconds=SECONDS, what="the first tokens")
        full(process)
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while "cannot be written" not in lines[-1]:
            assert lines[-1], lines
            lines.append(process.stderr.readline())
        full(process, resource.RLIM_INFINITY)
        return finished(process)


def full_at_the_end(case: Case) -> Finished:
    with case.started("--json", *mortal("--linger 6"), *LOAD) as process:
        with case.reading() as reader:
            wait_for(lambda: reader.request_count() == 20, seconds=SECONDS, what="the last request")
            ticks = len(reader.ticks())
            wait_for(lambda: len(reader.ticks()) > ticks or _idle(reader), seconds=SECONDS, what="the load's end")
        full(process)
        return finished(process)


def _idle(reader: RecordingReader) -> bool:
    return reader.ticks()[-1].client.gauges.in_flight == 0


def removed(case: Case) -> Finished:
    with case.started("--json", *mortal(), *STEADY) as process:
        with case.reading() as reader:
            wait_for(lambda: received(reader), seconds=SECONDS, what="the first tokens")
        shutil.rmtree(case.recording.parent)
        return finished(process)


def moved(case: Case) -> Finished:
    with case.started("--json", *mortal(), *STEADY) as process:
        with case.reading() as reader:
            wait_for(lambda: received(reader), seconds=SECONDS, what="the first tokens")
            elsewhere = case.folder / "elsewhere"
            elsewhere.mkdir()
            case.recording.rename(elsewhere / "moved.servetop")
        done = finished(process)
    assert not case.recording.exists()
    assert f"the recording was moved: it continues in {case.found()}" in done.err
    return done


OUTCOMES: dict[str, Callable[[Case], Finished]] = {
    "everything went well": with_engine(),
    "the engine cannot be started": lambda case: case.run(
        "--json", "--engine", "vllm", "--model", "a/tiny", "--engine-command", "false", *LOAD
    ),
    "the engine is killed before it is ready": with_engine("--die-after -1"),
    "the engine is killed during the load": with_engine("--die-at 5"),
    "the engine is killed with the last request": with_engine("--die-at 20"),
    "the engine is killed after the last response": with_engine("--die-after 20"),
    "the engine is killed between two cells of a sweep": between_cells,
    "an attached engine is gone during the load": attached_engine_gone,
    "nothing answers at the URL": nothing_answers,
    "all requests fail": with_engine("--fail-every 1"),
    "half of the requests fail": with_engine("--fail-every 2"),
    "half of the requests fail, and `--max-failures 50%` allows it": with_engine(
        "--fail-every 2", load=(*LOAD, "--max-failures", "50%")
    ),
    "1 % of the requests fail": with_engine(
        "--fail-every 100", load=("--request-rate", "inf", "--num-prompts", "100", *LENGTHS)
    ),
    "no request ends before the drain timeout": with_engine("--gap 60", load=(*LOAD, "--drain-timeout", "1")),
    "a threshold is not met": with_engine(load=(*LOAD, "--threshold", "completed>=1000")),
    "the recording's disk is full at the start": full_at_the_start,
    "the recording's disk is full from the middle on": full_in_the_middle,
    "the recording's disk is full at the end": full_at_the_end,
    "the recording's disk is full for a while": full_for_a_while,
    "the recording is removed with its folder": removed,
    "the recording is moved to another folder": moved,
}
"""By the first cell of the table's rows; signals are in `signal_outcomes`, dashboards in `dashboard_outcomes`."""
