"""The outcomes of runs with a dashboard or with web pages: docs/reference/exit-codes.md."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Callable

import psutil

from tests.cli.outcomes import SECONDS, Case
from tests.cli.phases import LOAD, SHORT, assert_gone, dashboard, family, until, words_for
from tests.cli.terminal import Terminal
from tests.harness import Finished, command_line, wait_for
from tests.reserved_port import reserved_port


def signalled(number: signal.Signals, phase: str) -> Callable[[Case], Finished]:
    """A signal to the dashboard in a phase of its run."""
    return lambda case: _watched(case, phase, lambda terminal: terminal.process.send_signal(number))


def closed(case: Case) -> Finished:
    return _watched(case, "load", Terminal.close)


def run_killed(phase: str) -> Callable[[Case], Finished]:
    """The run process behind a dashboard, which stays until somebody leaves it."""

    def strike(terminal: Terminal) -> None:
        _, *processes = family(terminal.process.pid)
        # What it starts has its command line too until it executes its own.
        runs = [each for each in processes if "servetop.run.run_process" in command_line(each)]
        min(runs, key=psutil.Process.create_time).kill()
        assert_gone(processes)
        terminal.type("q")

    return lambda case: _watched(case, phase, strike)


def _watched(case: Case, phase: str, strike: Callable[[Terminal], None]) -> Finished:
    """A dashboard in a terminal; no process of it or of its run is left."""
    case.servetop.environment["MARK"] = str(case.folder / "started-once")
    with dashboard(case.servetop, case.recording, *words_for(phase)) as terminal:
        with case.reading() as reader:
            until(phase, reader)
        processes = family(terminal.process.pid)
        strike(terminal)
        code = terminal.process.wait(SECONDS)
        assert_gone(processes)
        screen_left = terminal.text.rpartition("\x1b[?1049l")[2]
    if code >= 0:
        assert f"recording  {case.recording}" in screen_left
    return Finished(code, "", screen_left if code >= 0 else "")


def pages(number: signal.Signals) -> Callable[[Case], Finished]:
    """A signal to the server of a run's pages."""

    def bring_about(case: Case) -> Finished:
        with reserved_port() as port, case.started("--web", "--web-port", str(port), *LOAD, *SHORT) as process:
            with case.reading() as reader:
                until("load", reader)
            wait_for(lambda: _answers_somehow(port), seconds=SECONDS, what="the server of the pages")
            processes = family(process.pid)
            process.send_signal(number)
            _, err = process.communicate(timeout=SECONDS)
            assert_gone(processes)
            assert not _answers_somehow(port)
        return Finished(process.returncode, "", err)

    return bring_about


def _answers_somehow(port: int) -> bool:
    """Somebody listens there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


WATCHED: dict[str, Callable[[Case], Finished]] = {
    **{
        f"{number.name} to the dashboard during the load": signalled(number, "load")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    },
    "the dashboard's terminal is closed during the load": closed,
    **{
        f"SIGKILL of {what} {words}": bring_about(phase)
        for words, phase in {
            "during the boot": "boot",
            "during the load": "load",
            "during a restart of the engine": "restart",
        }.items()
        for what, bring_about in {
            "the dashboard": lambda phase: signalled(signal.SIGKILL, phase),
            "the run process behind a dashboard": run_killed,
        }.items()
    },
    **{
        f"{number.name} to the server of pages": pages(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
    },
}
"""By the first cell of the table's rows."""
