"""Exit code, last line and recording of each outcome: docs/reference/exit-codes.md, row by row."""

from __future__ import annotations

import contextlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.cli.dashboard_outcomes import WATCHED
from tests.cli.outcomes import OUTCOMES, Case
from tests.cli.signal_outcomes import SIGNALLED
from tests.harness import RAN, Servetop

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux can limit another process's files"),
]

ALL = OUTCOMES | SIGNALLED | WATCHED
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"


@dataclass(frozen=True)
class Row:
    """One row of the page's table."""

    happened: str
    code: int
    last_line: str
    """`…` stands for any text; empty: no error, or an unknown one."""
    recording: str


def rows() -> list[Row]:
    table = PAGE.read_text().partition("| what happened |")[2].splitlines()[2:]
    lines = (line for line in table if line.startswith("|"))
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [Row(what, int(code), line.strip("`"), recording) for what, code, line, recording in cells]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.happened)
def test_each_outcome_has_the_exit_code_last_line_and_recording_of_the_table(
    servetop: Servetop, tmp_path: Path, row: Row
) -> None:
    case = Case(servetop, tmp_path)
    done = ALL[row.happened](case)
    assert done.code == row.code or (row.code == 0 and done.code in RAN), done.err
    assert "Traceback" not in done.err
    if row.last_line:
        pattern = ".*".join(map(re.escape, row.last_line.split("…")))
        assert re.fullmatch(pattern, done.err.splitlines()[-1]), done.err
    elif row.code == done.code:
        assert not done.err.splitlines()[-1:] or not done.err.splitlines()[-1].startswith("servetop: ")
    if done.code > 0 and done.out:
        assert done.summary["exit_code"] == done.code
        assert done.summary["error"] == done.err.splitlines()[-1].removeprefix("servetop: ")
    expected = f"ends with {done.code}" if row.code == 0 else row.recording
    assert said_by(case.found(), reason=": " in expected) == expected


def said_by(recording: Path, *, reason: bool) -> str:
    if not recording.exists():
        return "none"
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        assert not reader.is_live()
        if reader.end is None:
            return "broken off"
        return f"ends with {reader.end.exit_code}" + (f": {reader.end.reason}" if reason else "")


def test_every_tested_outcome_is_in_the_table() -> None:
    assert {row.happened for row in rows()} == set(ALL)
