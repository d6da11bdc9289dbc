"""`servetop report` writes one file as a whole, and refuses targets that would destroy something."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.core.config import StageConfig
from servetop.reports.page.png_picture import png_available, png_of
from servetop.run.search.result_page import recording_picture
from tests.judgement.brief_recordings import record_briefly


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


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("pair")
    load = StageConfig(request_rate=20.0, duration=15.0)
    return tuple(  # type: ignore[return-value]
        str(record_briefly(folder / f"{name}.servetop", load, settings={"c0": c0}))
        for name, c0 in (("old", "0.001"), ("new", "0.004"))
    )


def test_two_recordings_are_compared(
    pair: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", *pair]) == 0
    assert capsys.readouterr().out == "old-vs-new.html\n"
    assert "<h1>B is worse: TTFT mean +" in (tmp_path / "old-vs-new.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words", [["-o", "x.md"], ["--format", "md", "-o", "x"], ["--format", "md", "-o", "x.txt"], ["--format", "md"]]
)
def test_markdown_is_that_of_compare_and_of_summary(
    pair: tuple[str, str],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for names, command in ((["sample"], "summary"), ([*pair], "compare")):
        assert main(["report", *names, *words]) == 0
        target = tmp_path / capsys.readouterr().out.strip()
        assert main([command, *names, "--markdown"]) == 0
        assert target.read_text(encoding="utf-8") == capsys.readouterr().out


@pytest.mark.parametrize("words", [["-o", "x.png"], ["--format", "png", "-o", "x"], ["--format", "png"]])
def test_a_png_is_the_picture(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("resvg_py")
    if not png_available():
        pytest.skip("this machine has no font")
    monkeypatch.chdir(tmp_path)
    assert main(["report", "sample", *words]) == 0
    png = (tmp_path / capsys.readouterr().out.strip()).read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert png == png_of(recording_picture("sample"), zoom=2)


def test_a_png_without_the_renderer_is_one_line_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    monkeypatch.chdir(tmp_path)
    assert main(["report", "sample", "--format", "png"]) == 2
    assert capsys.readouterr().err == (
        "servetop: PNG needs resvg: install servetop with its extra, as in pip install 'servetop[png]', or give "
        "--format svg\n"
    )
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["sample", "sample", "sample"],
            "report compares two recordings, not 3: leave some out, or use servetop compare",
        ),
        (
            ["sample", "-o", "x.pdf"],
            "--output x.pdf: no format has the suffix .pdf: use .html, .md, .svg or .png, or --format",
        ),
        (["sample", "-o", "x.html", "--format", "md"], "--format md and --output x.html exclude each other"),
        (["sample", "--format", "pdf"], "html, md, svg or png"),
        (["sample", "--anyway"], "--anyway is for two recordings: name another one, or leave it out"),
        (["sample", "--format", "md", "--price", "2/h"], "--price has no effect on the Markdown of one recording"),
        (["sample,latest", "sample"], "sample,latest names several recordings: name one"),
        (["sample", "sample"], "is given twice"),
    ],
)
def test_what_does_not_fit_together_is_one_line(
    words: list[str],
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", *words]) == 2
    found = capsys.readouterr().err
    assert error in found
    assert found.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_missing_recording_and_a_missing_folder_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path / "none.servetop")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    target = tmp_path / "no" / "page.html"
    assert main(["report", "sample", "-o", str(target)]) == 1
    error = capsys.readouterr().err
    assert error == f"servetop: cannot write {target}: no such file or directory: give another file with -o\n"
