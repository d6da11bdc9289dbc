"""The shape of the code: sizes, names and the direction of imports."""

from __future__ import annotations

import ast
import collections
import statistics
from collections.abc import Iterator

import pytest

from tests.house.source_tree import ROOMS, TOP, Module, imports_of, modules

LONGEST_FILE, LONGEST_FUNCTION, MEDIAN_FILE = 300, 40, 120
LARGEST_ROOM = 0.20
"""Of all lines of code."""
MOST_IN_A_ROOT = 12
"""Modules directly in a package's root, `__init__.py` included."""


def _plain(every: tuple[Module, ...]) -> list[Module]:
    return [module for module in every if not module.is_package]


def test_no_file_is_too_long_and_most_are_short() -> None:
    assert [f"{module.path}: {module.lines} lines" for module in modules() if module.lines > LONGEST_FILE] == []
    assert statistics.median(module.lines for module in _plain(modules())) < MEDIAN_FILE


def test_no_test_file_is_too_long() -> None:
    files = list((TOP / "tests").rglob("*.py"))
    assert [str(path) for path in files if path.read_text(encoding="utf-8").count("\n") > LONGEST_FILE] == []


def test_no_function_is_too_long() -> None:
    long = [
        f"{module.path}:{node.lineno} {node.name}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []


def test_no_room_holds_more_than_a_fifth_of_the_code() -> None:
    sizes = collections.Counter[str]()
    for module in modules():
        sizes[module.room] += module.lines
    room, lines = sizes.most_common(1)[0]
    assert lines <= LARGEST_ROOM * sizes.total(), f"{room}: {lines / sizes.total():.1%}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_package_root_holds_at_most_a_dozen_modules(room: str) -> None:
    assert len(list((TOP / room / "servetop" / room).glob("*.py"))) <= MOST_IN_A_ROOT


@pytest.mark.parametrize("room", ROOMS)
def test_module_names_are_unique_within_a_package(room: str) -> None:
    names = collections.Counter(module.path.stem for module in _plain(modules()) if module.room == room)
    assert [name for name, count in names.items() if count > 1] == []


def test_public_class_names_are_unique() -> None:
    places: dict[str, list[str]] = {}
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module.name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_name_is_imported_from_the_module_that_defines_it() -> None:
    """No re-exports: a name that a module imports is not imported from there by another."""
    own = {module.name: _defined(module) for module in modules()}
    strangers = [
        f"{module.path}: {node.module}.{alias.name}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module in own
        for alias in node.names
        if alias.name not in own[node.module] and f"{node.module}.{alias.name}" not in own
    ]
    assert strangers == []


def _defined(module: Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = frozenset(module.name for module in modules())
    graph = {module.name: imports_of(module, names) for module in modules()}
    assert [sorted(circle) for circle in _circles(graph)] == []


def test_no_folders_beside_each_other_import_each_other() -> None:
    names = frozenset(module.name for module in modules())
    folders = {
        module.name: module.name if module.is_package else module.name.rpartition(".")[0] for module in modules()
    }
    graph: dict[str, set[str]] = {folder: set() for folder in folders.values()}
    for module in modules():
        graph[folders[module.name]] |= {folders[name] for name in imports_of(module, names)} - {folders[module.name]}
    beside = ((one, other) for one in graph for other in graph[one] if one < other and not other.startswith(f"{one}."))
    assert [pair for pair in beside if pair[0] in graph[pair[1]]] == []


def _circles(graph: dict[str, set[str]]) -> Iterator[set[str]]:
    """Sets of two or more modules of which each can be reached from each other."""
    reach = {name: _reachable(graph, name) for name in graph}
    left = set(graph)
    while left:
        name = left.pop()
        circle = {other for other in reach[name] if name in reach[other]} | {name}
        left -= circle
        if len(circle) > 1:
            yield circle


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        new = graph[todo.pop()] - found
        found |= new
        todo += new
    return found
