"""Signals to the processes of a headless run in each of its phases: docs/reference/exit-codes.md."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable, Iterator

import psutil

from servetop.core.events import StageChange
from servetop.recordings.read.reader import RecordingReader
from tests.cli.outcomes import ENDLESS, LENGTHS, LOAD, SECONDS, Case, finished, mortal
from tests.harness import Finished, command_line, received, wait_for


def signalled(number: signal.Signals, phase: str, *, target: str = "run") -> Callable[[Case], Finished]:
    """A signal to a process of `servetop --headless` in a phase of its run."""

    def bring_about(case: Case) -> Finished:
        with case.started(*_words(phase, target, case)) as process:
            with case.reading() as reader:
                wait_for(lambda: _reached(phase, reader, case), seconds=SECONDS, what=phase)
            hit = wait_for(lambda: next(_targets(process.pid, target), None), seconds=SECONDS, what=target)
            os.kill(hit, number)
            if target != "run":
                (case.folder / "go").touch()
            return finished(process)

    return bring_about


def _targets(run: int, target: str) -> Iterator[int]:
    if target == "run":
        yield run
        return
    wanted = {"sender": "servetop.run.process.sender_program", "engine": "mortal_server.py"}[target]
    for each in psutil.Process(run).children(recursive=True):
        words = command_line(each)
        if any(word.endswith(wanted) for word in words) and not any(word.endswith("watchdog.py") for word in words):
            yield each.pid


def one_of_two_killed(case: Case) -> Finished:
    load = ("--request-rate", "20", "--num-prompts", "60", *LENGTHS, "--max-failures", "100%")
    with case.started("--json", "--workers", "2", *mortal(), *load) as process:
        with case.reading() as reader:
            wait_for(lambda: received(reader), seconds=SECONDS, what="the first tokens")
        *_, second = sorted(_targets(process.pid, "sender"))
        os.kill(second, signal.SIGKILL)
        return finished(process)


def killed_and_resumed(case: Case) -> Finished:
    words = (*case.sweep("num_prompts = 8"), *mortal("--gap 0.2"))
    with case.started(*words) as process:
        with case.reading() as reader:
            wait_for(lambda: received(reader), seconds=SECONDS, what="the first tokens")
        process.kill()
        finished(process)
    done = case.run(*words, "--resume")
    assert [cell["completed"] for cell in done.summary["stages"] if cell["finished"]] == [8, 8]
    return done


def _words(phase: str, target: str, case: Case) -> tuple[str, ...]:
    """A run that stays in the phase for a while; in the boot, until there is the file `go`."""
    match phase:
        case "boot":
            return ("--json", *mortal(f"--boot-until {shlex.quote(str(case.folder / 'go'))}"), *ENDLESS)
        case "load":
            return ("--json", *mortal(), *ENDLESS)
        case "drain":
            return ("--json", *mortal("--gap 3"), "--request-rate", "inf", "--num-prompts", "2", *LENGTHS)
        case "restart":
            engine = mortal(f"--never-ready-once {shlex.quote(str(case.folder / 'mark'))}")
            return (*case.sweep("num_prompts = 4"), *engine)
        case "cell":
            duration = "15s" if target == "engine" else "300s"  # the next cell follows one whose engine was killed
            return (*case.sweep(f'duration = "{duration}"'), *mortal())
        case "stop":
            requested = f"--stop-file {shlex.quote(str(case.folder / 'requested'))}"
            return ("--json", *mortal(requested, f"--linger {60 if target == 'engine' else 6}"), *LOAD)
    raise AssertionError(phase)


def _reached(phase: str, reader: RecordingReader, case: Case) -> bool:
    match phase:
        case "boot":
            return len(reader.ticks()) > 2
        case "drain":
            return any(_drains(reader)) and received(reader)
        case "restart":
            started = (case.folder / "mark.again").exists()  # the engine that was noted to restart may still be ending
            return started and any(note.text.endswith("restarting the engine") for note in reader.notes())
        case "stop":
            return (case.folder / "requested").exists()
    stages: list[StageChange] = reader.stages()
    return bool(stages) and received(reader)


def _drains(reader: RecordingReader) -> Iterator[bool]:
    for tick in reader.ticks():
        yield tick.client.gauges.request_rate is None and tick.client.gauges.in_flight > 0


PHASES = {
    "during the boot": "boot",
    "during the load": "load",
    "during the drain": "drain",
    "during a restart of the engine": "restart",
    "during a cell of a sweep": "cell",
    "while the engine is being stopped": "stop",
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)

SIGNALLED: dict[str, Callable[[Case], Finished]] = {
    **{f"{number.name} {words}": signalled(number, phase) for number in SIGNALS for words, phase in PHASES.items()},
    **{
        f"SIGKILL of the only sender {words}": signalled(signal.SIGKILL, phase, target="sender")
        for words, phase in PHASES.items()
        if phase != "stop"  # it has ended by then
    },
    **{
        f"SIGKILL of the engine {words}": signalled(signal.SIGKILL, phase, target="engine")
        for words, phase in PHASES.items()
    },
    "SIGKILL of one of two senders during the load": one_of_two_killed,
    "SIGKILL during a cell of a sweep, then `--resume`": killed_and_resumed,
}
"""By the first cell of the table's rows."""
