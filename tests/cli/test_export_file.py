"""`servetop export` writes to a file or to standard output, and refuses what it cannot write in one line."""

from __future__ import annotations

import csv
import json
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


def test_a_dash_is_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", "sample", "-o", "-"]) == 0
    assert len(list(csv.DictReader(capsys.readouterr().out.splitlines()))) == 803
    assert main(["export", "sample", "--format", "parquet", "-o", "-"]) == 2
    assert capsys.readouterr().err == "servetop: format parquet is not text: add -o FILE\n"
    assert main(["report", "sample", "--format", "md", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("**KV-bound from 0:49")
    assert main(["report", "sample", "--format", "png", "-o", "-"]) == 2
    assert capsys.readouterr().err == "servetop: a PNG is not text: add -o FILE\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--format", "xml"], "servetop: invalid --format xml: use csv"),
        (["--table", "users"], "servetop: invalid --table users: use requests, ticks, stages, engine or gpu"),
        (["--table", "gpu"], "servetop: overload has no rows for --table gpu: no GPU was read\n"),
        (["--stage", "1"], "servetop: --stage has no effect with --format csv"),
        (["--format", "vllm", "--table", "ticks"], "servetop: --table is for csv, jsonl and parquet"),
        (
            ["--format", "perfetto", "--stage", "1"],
            "servetop: --stage has no effect with --format perfetto: it has the",
        ),
        (["--format", "openmetrics", "--table", "ticks"], "servetop: --table is for csv, jsonl and parquet"),
        (["--format", "parquet"], "servetop: format parquet is not text: add -o FILE\n"),
        (["--format", "vllm", "--stage", "9"], "servetop: overload has no stage 9 with requests: it has 0, 1, 2, 3\n"),
        (["--format", "vllm"], "servetop: overload is 4 files in format vllm: add -o FOLDER for all, or --stage"),
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


def test_each_stage_is_written_to_a_folder_and_what_is_lost_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results"
    assert main(["export", "sample", "--format", "vllm", "-o", str(folder)]) == 0
    printed = capsys.readouterr()
    assert sorted(printed.out.splitlines()) == sorted(str(each) for each in folder.iterdir())
    assert [json.loads(each.read_bytes())["completed"] for each in sorted(folder.iterdir())] == [390, 200, 54, 159]
    assert printed.err.startswith("servetop: not in format vllm: engine, GPU and tick samples; ")
    assert printed.err.count("\n") == 1
    (tmp_path / "file").touch()
    assert main(["export", "sample", "--format", "vllm", "-o", str(tmp_path / "file")]) == 1
    assert "file exists" in capsys.readouterr().err


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
