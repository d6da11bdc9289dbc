"""Every `servetop` command line of the docs names options and commands that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, name_of
from tests.house.source_tree import TOP

REFERENCE = (TOP / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
OPTIONS = set(re.findall(r"`(--?[\w-]+)`", REFERENCE)) | {"--help", "--version"}
COMMANDS = set(re.findall(r"^### servetop ([\w-]+)$", REFERENCE, re.MULTILINE))
OWN_OPTIONS = {"serve"}
"""Commands whose options are those of another program."""


def command_lines(page: Path) -> list[str]:
    """The lines of code blocks that start `servetop`, without prompts, comments and what goes to the engine."""
    text = page.read_text(encoding="utf-8")
    consoles = "".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL))
    lines = re.findall(r"^(?:    |\$ )(?:\.venv/bin/)?servetop( .*)?$", text, re.MULTILINE)
    lines += re.findall(r"^servetop( .*)?$", consoles, re.MULTILINE)
    return [re.sub(r"  +.*| #.*| -- .*| \|.*| > .*", "", line).strip() for line in lines]


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
