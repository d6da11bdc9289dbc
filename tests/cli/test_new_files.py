"""The files of the dashboard's keys are new ones, in the present directory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servetop.cli.viewing.new_files import save_picture, write_report
from servetop.core.errors import ServetopError
from servetop.recordings.library.catalog import resolve
from servetop.reports.page.png_picture import png_available


def test_a_picture_never_replaces_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    names = [
        [str(each) for each in save_picture("run-1-50", text)] for text in ("<svg>first</svg>", "<svg>second</svg>")
    ]
    assert names == [["run-1-50.svg"], ["run-1-50-2.svg"]]
    assert [(tmp_path / name).read_text(encoding="utf-8") for (name,) in names] == [
        "<svg>first</svg>",
        "<svg>second</svg>",
    ]


def test_a_png_lies_beside_the_picture_where_it_can_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resvg_py")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.svg").touch()
    screen = '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60"><text y="40">TTFT</text></svg>'
    written = [str(each) for each in save_picture("run", screen)]
    assert written == (["run-2.svg", "run-2.png"] if png_available() else ["run-2.svg"])
    assert all((tmp_path / name).stat().st_size > 0 for name in written)


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
