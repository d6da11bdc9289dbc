"""`servetop report` writes one file as a whole, and refuses targets that would destroy something."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.cli.main import main


def test_a_report_is_written_where_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "page.html"
    assert main(["report", "sample", "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "KV-bound from 0:49" in text
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_without_a_name_it_has_that_of_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "sample"]) == 0
    assert [each.name for each in tmp_path.iterdir()] == ["overload.html"]


def test_a_recording_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = tmp_path / "mine.servetop"
    recording.write_bytes(b"precious")
    assert main(["report", "sample", "-o", str(recording)]) == 2
    assert recording.read_bytes() == b"precious"
    assert "give the name of an HTML file, as in -o report.html" in capsys.readouterr().err
    assert main(["report", "sample", "-o", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_a_missing_recording_and_a_missing_folder_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path / "none.servetop")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    target = tmp_path / "no" / "page.html"
    assert main(["report", "sample", "-o", str(target)]) == 1
    error = capsys.readouterr().err
    assert error == f"servetop: cannot write {target}: no such file or directory: give another file with -o\n"
