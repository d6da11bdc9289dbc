"""`servetop export` writes a plug-in's format, and a broken plug-in is a line that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.cli.main import main
from tests.plug_in_package import install

HEAD = "from servetop.api.plug_ins import *\n"


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def made(expression: str) -> None:
        groups = {"servetop.exporters": {"acme": "acme_export:MADE"}}
        install(tmp_path / "site", monkeypatch, groups, {"acme_export": f"{HEAD}MADE = {expression}\n"})

    return made


def test_bytes_are_written_to_a_file_alone(
    tmp_path: Path, acme: Callable[[str], None], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    acme('Exporter(suffix=".bin", write=lambda recording: [b"\\x00", recording.path.name.encode()], binary=True)')
    assert main(["export", "sample", "--format", "acme"]) == 2
    assert capsysbinary.readouterr().err == b"servetop: format acme is not text: add -o FILE\n"
    assert main(["export", "sample", "--format", "acme", "-o", str(tmp_path)]) == 0
    (written,) = tmp_path.glob("*.bin")
    assert written.read_bytes().startswith(b"\x00")


def test_the_figures_that_it_gets_are_those_of_the_summary(
    acme: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    acme('Exporter(suffix=".txt", write=lambda recording: [f"{recording.summary().requests.completed}\\n"])')
    assert main(["export", "sample", "--format", "acme"]) == 0
    assert capsys.readouterr().out == "803\n"


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("1 / 0", "import failed: ZeroDivisionError: division by zero"),
        ("7", "is int: it must be a Exporter of servetop.api.plug_ins"),
        ('Exporter(suffix="/../x", write=print)', "suffix is '/../x': use letters, digits"),
        ('Exporter(suffix=".x", write=lambda recording: [7])', "write yielded int: it must yield str"),
        ('Exporter(suffix=".x", write=lambda recording: ["a", b"b"])', "write yielded bytes: it must yield str"),
        ('Exporter(suffix=".x", write=lambda recording: None)', "write failed: TypeError: 'NoneType' object is not"),
        ('Exporter(suffix=".x", write=lambda recording: recording.nothing)', "write failed: AttributeError: "),
    ],
)
def test_a_broken_exporter_is_one_line_and_leaves_no_file(
    expression: str, error: str, tmp_path: Path, acme: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    acme(expression)
    target = tmp_path / "run.x"
    assert main(["export", "sample", "--format", "acme", "-o", str(target)]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("servetop: exporter 'acme' of servetop-acme 1.0 (acme_export:MADE)")
    assert error in printed
    assert printed.count("\n") == 1
    assert not target.exists()
    assert main(["export", "sample", "--format", "csv", "-o", str(tmp_path / "run.csv")]) == 0


@pytest.mark.parametrize("option", ["--table=ticks", "--stage=1"])
def test_options_of_other_formats_are_refused(
    option: str, acme: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    acme('Exporter(suffix=".x", write=lambda recording: ["a"])')
    assert main(["export", "sample", "--format", "acme", option]) == 2
    assert "--format acme" in capsys.readouterr().err
