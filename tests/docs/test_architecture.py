"""The walks of docs/architecture.md: at most eight stops, no return to a file, and every file and name exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import file_of
from tests.house.source_tree import ROOMS, TOP

PAGE = TOP / "docs" / "architecture.md"
STOP = re.compile(r"^\d\. `([\w./]+\.py)` `([\w.]+)`: ", re.MULTILINE)
WALKS = dict(re.findall(r"^\*\*(.+?)\*\*\n\n((?:\d\. .*\n)+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def names_in(path: Path) -> set[str]:
    """The names that a module defines: functions, classes and constants, and methods as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            functions = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {node.name, *(f"{node.name}.{each.name}" for each in functions)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    return found


def test_the_page_is_one_page_with_four_walks() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 110
    assert len(WALKS) == 4


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_is_short_and_its_stops_exist(walk: str) -> None:
    stops = STOP.findall(WALKS[walk])
    assert 3 <= len(stops) == WALKS[walk].count("\n") <= 8
    assert len({path for path, _ in stops}) == len(stops)
    assert [(path, name) for path, name in stops if name not in names_in(file_of(path))] == []


def test_the_picture_names_classes_that_exist() -> None:
    picture = PAGE.read_text(encoding="utf-8").split("```")[1]
    named = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b", picture))
    sources = (path.read_text(encoding="utf-8") for room in ROOMS for path in (TOP / room).rglob("*.py"))
    defined = {name for text in sources for name in re.findall(r"^class (\w+)", text, re.MULTILINE)}
    assert len(named) > 8
    assert named - defined == set()
