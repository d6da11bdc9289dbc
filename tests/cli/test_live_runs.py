"""Active runs are listed, watched and stopped from any terminal."""

from __future__ import annotations

import contextlib
import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.cli.terminal import Terminal
from tests.harness import RAN, Servetop, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

LOAD = ("--request-rate", "8", "--duration", "300", "--output-len", "40")
BRIEF = ("--num-prompts", "4", "--max-concurrency", "2", "--input-len", "8", "--output-len", "4")


def listed(servetop: Servetop) -> list[dict[str, Any]]:
    done = servetop("ps", "--json")
    assert done.code == 0, done.err
    runs: list[dict[str, Any]] = json.loads(done.out)
    return runs


def in_state(servetop: Servetop, state: str) -> Callable[[], bool]:
    return lambda: [run["state"] for run in listed(servetop)] == [state]


def test_a_detached_run_is_listed_watched_and_stopped(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    started = servetop("--detach", "--json", *LOAD, "--record", str(recording))
    assert started.code == 0, started.err
    run_id = json.loads(started.out)["id"]
    try:
        wait_for(in_state(servetop, "running"), seconds=120, what="the load")
        (run,) = listed(servetop)
        assert run["id"] == run_id
        assert run["recording"] == str(recording)
        assert run["detached"]
        table = servetop("ps").out
        assert all(word in table for word in (run_id, "sim", "running, detached", str(recording)))
        attach = [sys.executable, "-m", "servetop", "attach", run_id[:2]]
        with Terminal.run(attach, servetop.environment) as terminal:
            wait_for(lambda: "● REC" in terminal.text, seconds=120, what="the dashboard")
            terminal.type("q")
            assert terminal.process.wait(120) == 0
            assert f"Run {run_id} continues" in terminal.text
        assert in_state(servetop, "running")()
    finally:
        stopped = servetop("stop", "latest")
    assert stopped.code == 0, stopped.err
    assert stopped.out.splitlines()[0] == f"{run_id} has ended: stopped early (exit code 0)"
    assert listed(servetop) == []
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        assert reader.end is not None
        assert not [request for request in reader.requests(0.0, reader.end.at) if request.status != "ok"]


def test_a_viewer_reports_that_its_run_cannot_record(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    started = servetop("--detach", "--json", *LOAD, "--record", str(recording))
    assert started.code == 0, started.err
    try:
        wait_for(in_state(servetop, "running"), seconds=120, what="the load")
        (run,) = listed(servetop)
        assert run["trouble"] == ""
        resource.prlimit(run["pid"], resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        wait_for(lambda: listed(servetop)[0]["trouble"], seconds=120, what="the trouble")
        assert "running, detached, not recorded now" in servetop("ps").out
        attach = [sys.executable, "-m", "servetop", "attach", "latest"]
        with Terminal.run(attach, servetop.environment) as terminal:
            wait_for(lambda: "cannot be written" in terminal.text, seconds=120, what="the trouble on the screen")
            terminal.type("q")
            assert terminal.process.wait(120) == 0
        resource.prlimit(run["pid"], resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        wait_for(lambda: not listed(servetop)[0]["trouble"], seconds=120, what="the end of the trouble")
    finally:
        stopped = servetop("stop", "latest")
    assert stopped.code == 0, stopped.err


def test_stop_now_cancels_and_reports_a_run_that_is_still_active(servetop: Servetop) -> None:
    assert servetop("--detach", *LOAD[:4], "--output-len", "2000").code == 0
    try:
        wait_for(in_state(servetop, "running"), seconds=120, what="the load")
        waited = servetop("stop", "latest", "--timeout", "0")
        assert waited.code == 1
        assert "--now" in waited.err
        wait_for(in_state(servetop, "draining"), seconds=120, what="the drain")
    finally:
        stopped = servetop("stop", "latest", "--now")
    assert stopped.code == 0, stopped.err
    assert "(exit code 130)" in stopped.out


def test_a_run_that_was_left_running_prints_how_to_find_it(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    argv = [sys.executable, "-m", "servetop", *LOAD, "--record", str(recording)]
    with Terminal.run(argv, servetop.environment) as terminal:
        wait_for(in_state(servetop, "running"), seconds=120, what="the load")
        terminal.type("q")
        wait_for(lambda: "leave it running" in terminal.text, seconds=120, what="the question")
        terminal.type("l")
        assert terminal.process.wait(120) == 0
        (run,) = listed(servetop)
        try:
            assert f"servetop attach {run['id']}" in terminal.text
        finally:
            assert servetop("stop", run["id"], "--now").code == 0


def test_a_detached_run_that_cannot_start_fails_the_command(servetop: Servetop) -> None:
    done = servetop("--detach", *LOAD, "--record", "/dev/null/run.servetop")
    assert done.code == 1
    assert "cannot record to" in done.complaint
    assert servetop("--detach", "--no-record").code == 2
    assert listed(servetop) == []


def test_a_run_that_cannot_be_registered_continues_with_a_warning(servetop: Servetop, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.touch()
    servetop.environment["XDG_STATE_HOME"] = str(state)
    done = servetop("--headless", *BRIEF)
    assert done.code in RAN, done.err
    assert "servetop ps does not list this run: cannot write to" in done.err
    listed = servetop("ps")
    assert listed.code == 1
    assert "cannot list the runs in" in listed.complaint


def test_a_headless_run_in_the_foreground_is_listed_too(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "run.servetop"
    with servetop.started("--headless", *LOAD, "--record", str(recording)) as process:
        wait_for(in_state(servetop, "running"), seconds=120, what="the load")
        assert [run["pid"] for run in listed(servetop)] == [process.pid]
        assert not listed(servetop)[0]["detached"]
        assert servetop("stop", "run", "--now").code == 0
        process.communicate(timeout=120)
    assert process.returncode == 130


def test_an_unknown_run_is_a_usage_error(servetop: Servetop) -> None:
    for words in (("stop", "k7fq"), ("attach",)):
        done = servetop(*words)
        assert done.code == 2
        assert "you have no active run" in done.complaint
