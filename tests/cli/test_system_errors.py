"""Errors of the system, a full disk or a folder that cannot be entered, are one line on stderr in every command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

FULL = Path("/dev/full")
UNUSABLE = "x" * 300
"""A name that no file can have: for any user, access to it is an error other than that it does not exist."""


def servetop(*argv: str, home: Path, out: IO[str] | int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "SERVETOP_"))}
    return subprocess.run(
        [sys.executable, "-m", "servetop", *argv],
        env={**own, "HOME": str(home), "PYTHONUNBUFFERED": "1"},
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["--help"], 1),
        (["--version"], 1),
        (["ls", "--help"], 1),
        (["serve", "--help"], 1),
        (["serve", "--port", "8000", "-h"], 1),
        (["summary", "sample"], 1),
        (["ls"], 1),
        (["engines", "--json"], 1),
        (["--json", "--nosuch"], 2),
    ],
)
def test_a_full_output_is_reported_in_one_line(argv: list[str], code: int, tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = servetop(*argv, home=tmp_path, out=full)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    assert done.stderr.startswith("servetop: ")


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["serve", "--help"]])
def test_a_reader_that_is_gone_is_no_error(argv: list[str], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = servetop(*argv, home=tmp_path, out=pipe)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["summary", "nosuch"], 1),
        (["summary", f"./{UNUSABLE}"], 1),
        (["compare", "a", "b"], 1),
        (["ls"], 1),
        (["ps"], 1),
        (["sweep", f"{UNUSABLE}.toml", "--headless"], 1),
        (["--headless", "--num-prompts", "1"], 1),
        (["--headless", "--dataset-name", "sharegpt", "--dataset-path", UNUSABLE, "--num-prompts", "1"], 1),
    ],
)
def test_a_home_that_cannot_be_used_is_reported_in_one_line(argv: list[str], code: int, tmp_path: Path) -> None:
    done = servetop(*argv, home=tmp_path / UNUSABLE)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    assert "(file name too long)" in done.stderr


def test_a_run_without_a_recording_needs_no_home(tmp_path: Path) -> None:
    done = servetop("--headless", "--no-record", "--num-prompts", "1", "--json", home=tmp_path / UNUSABLE)
    assert done.returncode == 0, done.stderr
    assert "servetop ps does not list this run" in done.stderr
