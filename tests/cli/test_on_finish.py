"""`--on-finish` as a user runs it: after a run, an interrupted one, and one behind no terminal."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.harness import RAN, Servetop, opened, received, wait_for
from tests.run.test_finish_command import PRINT

LOAD = ("--request-rate", "20", "--input-len", "32", "--output-len", "8")


def command(written: Path) -> str:
    return shlex.join([sys.executable, "-c", PRINT, str(written)])


@pytest.mark.integration
def test_the_command_runs_when_the_recording_is_closed(servetop: Servetop, tmp_path: Path) -> None:
    recording, written = tmp_path / "r.servetop", tmp_path / "written.json"
    words = ("--headless", "--json", "--num-prompts", "20", "--record", str(recording))
    done = servetop(*LOAD, *words, "--on-finish", command(written))
    assert done.code in RAN, done.err
    assert done.summary["completed"] == 20
    found = json.loads(written.read_text())
    assert (found["RECORDING"], found["EXIT_CODE"]) == (str(recording), str(done.code))
    assert found["HEADLINE"] == done.summary["story"]["headline"]
    assert not recording.with_name("r.servetop-wal").exists()


@pytest.mark.integration
def test_it_runs_after_an_interruption_and_changes_no_exit_code(servetop: Servetop, tmp_path: Path) -> None:
    recording = tmp_path / "r.servetop"
    failing = shlex.join([sys.executable, "-c", "raise SystemExit(7)"])
    words = (*LOAD, "--headless", "--duration", "120", "--record", str(recording), "--on-finish", failing)
    with servetop.started(*words) as process:
        reader = wait_for(lambda: opened(recording), seconds=30, what="the recording")
        wait_for(lambda: received(reader), seconds=60, what="a token")
        reader.close()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == f"servetop: --on-finish: {sys.executable} ended with exit code 7"


@pytest.mark.integration
def test_it_runs_after_a_detached_run(servetop: Servetop, tmp_path: Path) -> None:
    written = tmp_path / "written.json"
    words = (*LOAD, "--num-prompts", "10", "--detach", "--record", str(tmp_path / "r.servetop"))
    started = servetop(*words, "--on-finish", command(written))
    assert started.code == 0, started.err
    wait_for(lambda: written.exists() and written.read_text().endswith("}"), seconds=60, what="the command")
    assert json.loads(written.read_text())["EXIT_CODE"] in {str(code) for code in RAN}
