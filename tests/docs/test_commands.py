"""Every `servetop` command line of the docs names options and commands that exist, with values that these take."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from servetop.cli.framework.click_commands import CommandSpec
from servetop.cli.framework.command_line import command_line_of
from servetop.cli.main import main
from tests.docs.pages import PAGES, name_of
from tests.house.source_tree import TOP

REFERENCE = (TOP / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
OPTIONS = set(re.findall(r"`(--?[\w-]+)`", REFERENCE)) | {"--help", "--version"}
COMMANDS = set(re.findall(r"^### servetop ([\w-]+)$", REFERENCE, re.MULTILINE))
OWN_OPTIONS = {"serve"}
"""Commands whose options are those of another program."""
OF_A_PLUG_IN = ("--format acme",)
"""Parts of lines that need a package of the reader."""


def whole_lines(page: Path) -> list[str]:
    """The lines of code blocks and of CI files that start `servetop`, without prompts, variables and comments."""
    text = page.read_text(encoding="utf-8")
    consoles = "".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL))
    start = r"^(?:    (?:\w+=\S+ )*|\$ (?:\w+=\S+ )*| +- |  run: )(?:\.venv/bin/)?servetop( .*)?$"
    lines = re.findall(start, text, re.MULTILINE)
    lines += re.findall(r"^servetop( .*)?$", consoles, re.MULTILINE)
    return [re.sub(r"  +.*| #.*| \|.*| > .*", "", line).strip() for line in lines]


def command_lines(page: Path) -> list[str]:
    """The same lines without what goes to the engine."""
    return [re.sub(r" -- .*", "", line) for line in whole_lines(page)]


def unknown(line: str) -> list[str]:
    """The words of a command line that are neither a known option nor a known command."""
    words = shlex.split(line)
    if words and words[0] in OWN_OPTIONS:
        return []
    single = [word for word in words if " " not in word]  # others are texts, as of --a
    given = [word.partition("=")[0] for word in single if word.startswith("-") and word != "-"]
    command = [words[0]] if words and words[0].isalpha() else []
    return [word for word in given if word not in OPTIONS] + [word for word in command if word not in COMMANDS]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_command_lines_name_known_options_and_commands(page: Path) -> None:
    found = {line: unknown(line) for line in command_lines(page)}
    assert {line: words for line, words in found.items() if words} == {}


def test_the_docs_have_command_lines() -> None:
    assert sum(len(command_lines(page)) for page in PAGES) > 50


def refusal(line: str) -> str | None:
    """What servetop says about a command line that it refuses; None if it accepts it."""
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        code = main(shlex.split(line.partition(" < ")[0]))
    return printed.getvalue() if code else None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_command_lines_are_accepted(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole command line is read, with the types of its options; only what the command does is left out."""

    def only_read(spec: CommandSpec[Any], context: click.Context, /, **_: object) -> int:
        if context.invoked_subcommand is None:
            command_line_of(context, spec.options, independent=spec.independent)
        return 0

    monkeypatch.setattr(CommandSpec, "_call", only_read)
    lines = [line for line in command_lines(page) if not any(part in line for part in OF_A_PLUG_IN)]
    refused = {line: text for line in lines if (text := refusal(line)) is not None}
    assert refused == {}
