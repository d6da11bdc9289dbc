"""A run in a separate process: what its owner learns if it does not start."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode
from servetop.core.events import Note, Severity
from servetop.run.process.owned_run import OwnedRun, RunNotStarted, stderr_file
from servetop.run.process.recording_trouble import alert_line, alert_note
from tests.harness import wait_for


async def test_a_run_that_cannot_record_reports_its_error_and_exit_code(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with tempfile.TemporaryFile("w+") as stderr:
        run = OwnedRun.start(RunConfig(), tmp_path / "file" / "run.servetop", stderr=stderr)
        with pytest.raises(RunNotStarted, match=r"^cannot record to ") as failure:
            await run.opened()
    assert failure.value.exit_code is ExitCode.RUN_FAILED
    assert run.ended


def test_stderr_of_a_run_is_read_by_line_and_keeps_the_last_line() -> None:
    with stderr_file() as stderr:
        writer = "import sys; sys.stderr.write('error: recorder: it is full\\nser'); sys.stderr.flush(); input();"
        more = "sys.stderr.write('vetop: the end\\n')"
        process = subprocess.Popen([sys.executable, "-c", writer + more], stdin=subprocess.PIPE, stderr=stderr)
        run = OwnedRun(process, Path("run.servetop"), stderr)
        lines = wait_for(run.new_stderr_lines, seconds=10, what="the first line")
        assert lines == ["error: recorder: it is full"]
        assert run.new_stderr_lines() == []
        process.communicate(b"\n")
        assert run.new_stderr_lines() == ["servetop: the end"]
        assert run.last_stderr_line() == "the end"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            alert_line(Severity.ERROR, "recorder", "a: b"),
            Note(at=3.0, severity=Severity.ERROR, source="recorder", text="a: b"),
        ),
        ("servetop: the run failed", None),
        ("error", None),
    ],
)
def test_only_alert_lines_become_notes(line: str, note: Note | None) -> None:
    assert alert_note(line, at=3.0) == note


async def test_a_run_killed_before_it_records_reports_the_signal(tmp_path: Path) -> None:
    with tempfile.TemporaryFile("w+") as stderr:
        run = OwnedRun.start(RunConfig(), tmp_path / "run.servetop", stderr=stderr)
        run.signal(signal.SIGKILL)
        with pytest.raises(RunNotStarted, match="ended by SIGKILL before it started to record") as failure:
            await run.opened()
    assert failure.value.exit_code is ExitCode.INTERRUPTED
