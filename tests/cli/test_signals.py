"""What ends a run and what does not: signals to each of its processes, a closed terminal, a killed owner."""

from __future__ import annotations

import contextlib
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from servetop.core.events import Action
from servetop.recordings.read.reader import RecordingReader
from servetop.run.process.run_registry import RunRegistry
from tests.cli.phases import (
    LOAD,
    LONG,
    SHORT,
    assert_gone,
    dashboard,
    end_of,
    family,
    ignores_sigterm,
    reading,
    until,
    words_for,
)
from tests.cli.terminal import Terminal
from tests.harness import Servetop, command_line, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return tmp_path / "run.servetop"


@pytest.fixture
def servetop(servetop: Servetop, tmp_path: Path) -> Servetop:
    servetop.environment["MARK"] = str(tmp_path / "started-once")
    return servetop


def test_requests_in_flight_finish_when_a_run_is_stopped(servetop: Servetop, recording: Path) -> None:
    with servetop.started("--headless", *LOAD, *SHORT, "--record", str(recording)) as process:
        with reading(recording) as reader:
            until("load", reader)
        processes = family(process.pid)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert_gone(processes)
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        assert reader.end is not None
        assert not [request for request in reader.requests(0.0, reader.end.at) if request.status != "ok"]


def test_a_second_sigterm_cancels_what_is_in_flight(servetop: Servetop, recording: Path) -> None:
    with servetop.started("--headless", *LOAD, *LONG, "--record", str(recording)) as process:
        with reading(recording) as reader:
            until("load", reader)
            process.send_signal(signal.SIGTERM)
            wait_for(lambda: reader.ticks()[-1].client.gauges.request_rate is None, seconds=120, what="the drain")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "servetop: stopped by SIGTERM; requests in flight were cancelled"


def test_a_headless_run_under_nohup_outlives_its_terminal(servetop: Servetop, recording: Path) -> None:
    argv = [sys.executable, "-m", "servetop", "--headless", *LOAD, *SHORT, "--record", str(recording)]
    command = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *argv]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=servetop.environment, stdin=quiet, stdout=quiet, stderr=quiet) as process:
        try:
            with reading(recording) as reader:
                until("load", reader)
                process.send_signal(signal.SIGHUP)
                seen = len(reader.ticks())
                wait_for(lambda: len(reader.ticks()) > seen + 4, seconds=120, what="another second")
                assert reader.ticks()[-1].client.gauges.request_rate == 8.0
        finally:
            process.send_signal(signal.SIGINT)


def test_a_run_whose_sender_has_stopped_can_be_interrupted(servetop: Servetop, recording: Path) -> None:
    with servetop.started("--headless", *LOAD, *SHORT, "--record", str(recording)) as process:
        with reading(recording) as reader:
            until("load", reader)
        processes = family(process.pid)
        (sender,) = (
            each
            for each in processes
            if each.is_running() and "servetop.run.process.sender_program" in command_line(each)
        )
        sender.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    assert_gone(processes)


def test_a_run_that_was_left_running_outlives_its_terminal(servetop: Servetop, recording: Path) -> None:
    with dashboard(servetop, recording, *LOAD, *SHORT) as terminal, reading(recording) as reader:
        until("load", reader)
        processes = family(terminal.process.pid)[1:]
        terminal.type("q")
        wait_for(lambda: "leave it running" in terminal.text, seconds=120, what="the question")
        terminal.type("l")
        assert terminal.process.wait(120) == 0
        terminal.close()
        seen = len(reader.ticks())
        try:
            wait_for(lambda: len(reader.ticks()) > seen + 4, seconds=120, what="another second")
        finally:
            reader.send(Action.CANCEL)
        assert_gone(processes)


def test_a_run_killed_while_stopping_its_engine_leaves_no_process(servetop: Servetop, recording: Path) -> None:
    registry = RunRegistry(Path(servetop.environment["XDG_STATE_HOME"]) / "servetop" / "runs")
    with servetop.started("--headless", *words_for("engine stop"), "--record", str(recording)) as process:
        with reading(recording) as reader:
            until("boot", reader)
        wait_for(lambda: any(map(ignores_sigterm, family(process.pid))), seconds=120, what="the stubborn engine")
        processes = family(process.pid)
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: [run.state for run in registry.runs()] == ["stopping"], seconds=120, what="the engine's stop")
        process.send_signal(signal.SIGKILL)
        process.wait(120)
        assert_gone(processes)
    assert registry.runs() == []


def test_a_dashboard_reports_a_full_disk_at_once(servetop: Servetop, recording: Path) -> None:
    with dashboard(servetop, recording, *words_for("load")) as terminal:
        with reading(recording) as reader:
            until("load", reader)
        _, *processes = family(terminal.process.pid)
        (run,) = (each for each in processes if "servetop.run.run_process" in command_line(each))
        log = recording.with_name(f"{recording.name}-wal")
        run.rlimit(psutil.RLIMIT_FSIZE, (max(log.stat().st_size, recording.stat().st_size), psutil.RLIM_INFINITY))
        wait_for(lambda: "cannot" in terminal.text and "written" in terminal.text, seconds=30, what="the alert")
        assert run.is_running()
        with contextlib.closing(sqlite3.connect(recording)) as connection:  # nor does it take a command
            connection.execute("BEGIN IMMEDIATE")
            terminal.type("q")
            wait_for(lambda: "drain and quit" in terminal.text, seconds=30, what="the question")
            terminal.type("d")
            assert_gone([run])
        assert terminal.process.wait(120) == 130
    assert "finishing the run" in terminal.text


def test_a_headless_run_whose_terminal_is_closed_leaves_one_plain_file(servetop: Servetop, recording: Path) -> None:
    argv = [sys.executable, "-m", "servetop", "--headless", *LOAD, *SHORT, "--record", str(recording)]
    with Terminal.run(argv, servetop.environment) as terminal:
        with reading(recording) as reader:
            until("load", reader)
        processes = family(terminal.process.pid)
        terminal.close()
        assert_gone(processes)
    assert [each.name for each in recording.parent.glob(f"{recording.name}*")] == [recording.name]
    end = end_of(recording)
    assert end is not None
    assert end.reason == "stopped by SIGHUP"


def test_a_run_whose_pages_cannot_be_served_is_ended_before_the_error(servetop: Servetop, recording: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = servetop("--web", "--web-port", str(taken.getsockname()[1]), *LOAD, "--record", str(recording))
    assert done.code == 2
    assert "cannot serve at" in done.complaint
    end = end_of(recording)
    assert end is not None
    assert end.exit_code == 130
