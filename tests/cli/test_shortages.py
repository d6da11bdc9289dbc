"""What the system refuses is told in one line."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from servetop.cli import main
from servetop.cli.shortages import shortage


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out of memory"),
        (OSError(errno.EMFILE, "Too many open files", "pynvml.py"), "too many open files"),
        (RuntimeError("can't start new thread"), "starts no more threads"),
    ],
)
def test_a_shortage_is_one_line_and_exit_code_1(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("servetop.cli.report.print_recordings", short)
    assert main.main(["ls"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("servetop: ")
    assert words in line


@pytest.mark.parametrize(
    "error", [RuntimeError("a bug"), FileNotFoundError(errno.ENOENT, "No such file"), ValueError()]
)
def test_any_other_error_is_none(error: Exception) -> None:
    assert shortage(error) == ""


def test_ctrl_c_meets_its_own_handler_before_anything_heavy_is_loaded() -> None:
    code = "import servetop.cli.entry, sys; print([m for m in sys.modules if m.startswith('servetop.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['servetop.cli', 'servetop.cli.entry']"
