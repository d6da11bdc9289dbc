"""The man page has every command and option, is current, and is plain roff."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.commands import COMMANDS
from servetop.cli.man_page import man_page
from servetop.cli.options.declaration import Option, declared
from servetop.cli.options.run_options import RunOptions

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "servetop.1"
MACROS = {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".I", ".RI", ".RB", ".IR", ".br", '.\\"'}


def test_the_man_page_is_current() -> None:
    assert PAGE.read_text(encoding="ascii") == man_page(), "run make options"


def test_the_man_page_has_every_command_and_option() -> None:
    entries = {line[3:].replace("\\-", "-") for line in man_page().splitlines() if line.startswith(".B ")}
    words = {word.rstrip(",") for entry in entries for word in entry.split()}
    assert [each.name for each in COMMANDS if each.name not in entries] == []
    classes: list[type[Any]] = [RunOptions, *(each.options for each in COMMANDS)]
    options = [each.form for shown in classes for each in declared(shown)]
    names = {name for form in options if isinstance(form, Option) for name in form.names.replace("/", " ").split()}
    assert names - words == set()


def test_no_text_of_an_option_is_read_as_roff() -> None:
    lines = man_page().splitlines()
    assert {line.split(" ")[0] for line in lines if line[:1] in (".", "'")} <= MACROS
    texts = [line for line in lines if not line.startswith('.\\"')]
    assert {each for line in texts for each in re.findall(r"\\.", line)} <= {"\\-", "\\(", "\\[", "\\&", "\\e"}


def test_the_wheel_installs_the_man_page() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"][str(PAGE.relative_to(ROOT))] == "share/man/man1/servetop.1"


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_reads_the_man_page() -> None:
    done = subprocess.run(["groff", "-man", "-Tascii", PAGE], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
