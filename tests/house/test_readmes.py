"""The README of each package: its first line, and the paths that it names."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.source_tree import ROOMS, TOP

_NAMED = re.compile(r"`([A-Za-z0-9_/.-]+(?:/|\.py|\.md|\.toml|\.tcss))`")


@pytest.mark.parametrize("room", ROOMS)
def test_it_begins_with_the_packages_docstring(room: str) -> None:
    docstring = ast.get_docstring(ast.parse((TOP / room / "servetop" / room / "__init__.py").read_text("utf-8")))
    assert docstring is not None
    assert (TOP / room / "README.md").read_text("utf-8").split("\n")[:3] == [
        f"# servetop.{room}", "", docstring.split("\n")[0],
    ]  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_the_paths_that_it_names_exist(room: str) -> None:
    package = TOP / room / "servetop" / room
    text = (TOP / room / "README.md").read_text("utf-8")
    named = [*_NAMED.findall(text), *re.findall(r"docs/[a-z/-]+\.md", text)]
    assert [path for path in named if not (TOP / path).exists() and not [*package.rglob(path.rstrip("/"))]] == []
