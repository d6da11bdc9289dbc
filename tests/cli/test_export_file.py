"""`servetop export` writes to a file or to standard output, and refuses what it cannot write in one line."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.cli.options.tool_options import EXPORT_FORMATS, EXPORT_TABLES
from servetop.reports.export.export_formats import FORMATS
from servetop.reports.export.exported_tables import TABLES


def test_the_options_name_every_format_and_table() -> None:
    assert tuple(FORMATS) == EXPORT_FORMATS
    assert tuple(TABLES) == EXPORT_TABLES


def test_a_table_is_written_to_standard_output_and_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "sample"]) == 0
    printed = capsys.readouterr()
    rows = list(csv.DictReader(printed.out.splitlines()))
    assert (len(rows), printed.err) == (803, "")
    target = tmp_path / "requests.csv"
    assert main(["export", "sample", "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    assert target.read_text(encoding="utf-8") == printed.out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--format", "xml"], "servetop: invalid --format xml: use csv"),
        (["--table", "users"], "servetop: invalid --table users: use requests, ticks, stages, engine or gpu"),
        (["--table", "gpu"], "servetop: overload has no rows for --table gpu: no GPU was read\n"),
        (["-o", "."], "servetop: --output . is a folder: give the name of a file"),
        (["-o", "x.servetop"], "servetop: --output x.servetop is a recording by its suffix"),
    ],
)
def test_what_cannot_be_written_is_one_line(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "sample", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(error)
    assert printed.err.count("\n") == 1


def test_a_missing_recording_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "none.servetop")]) == 1
    assert capsys.readouterr().err.startswith("servetop: no such recording: ")


def test_a_closed_pipe_ends_it_quietly() -> None:
    receiving, sending = os.pipe()
    os.close(receiving)
    done = subprocess.run(
        [sys.executable, "-m", "servetop", "export", "sample", "--format", "jsonl"],
        stdout=sending,
        stderr=subprocess.PIPE,
        check=False,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(sending)
    assert (done.returncode, done.stderr) == (0, "")
