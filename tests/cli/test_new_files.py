"""The files of the dashboard's keys are new ones, in the present directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.cli.viewing.new_files import save_picture, write_report
from servetop.core.errors import ServetopError
from servetop.recordings.library.catalog import resolve


def test_a_picture_never_replaces_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [str(save_picture("run-1-50", text)) for text in ("<svg>first</svg>", "<svg>second</svg>")]
    assert names == ["run-1-50.svg", "run-1-50-2.svg"]
    assert [(tmp_path / name).read_text(encoding="utf-8") for name in names] == [
        "<svg>first</svg>",
        "<svg>second</svg>",
    ]


def test_the_report_is_that_of_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(write_report(resolve("sample"))) == "overload.html"
    assert "KV-bound from 0:49" in (tmp_path / "overload.html").read_text(encoding="utf-8")


def test_a_folder_that_is_gone_is_an_error_of_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ServetopError, match="start servetop in a folder that can be written"):
        save_picture("run", "<svg/>")
    monkeypatch.chdir(tmp_path)
