"""The unit tests mirror the packages: a module without its own test file is listed with the file that tests it."""

from __future__ import annotations

import tomllib

import pytest

from tests.house.source_tree import ROOMS, TOP, Module, modules

LISTED: dict[str, str] = tomllib.loads((TOP / "tests/house/tested_elsewhere.toml").read_text(encoding="utf-8"))


def _has_own_test(module: Module) -> bool:
    return any((TOP / "tests" / module.room).rglob(f"test_{module.path.stem}.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_a_module_has_a_test_file_or_is_listed(room: str) -> None:
    names = {
        module.name.removeprefix("servetop."): _has_own_test(module)
        for module in modules()
        if module.room == room and not module.is_package
    }
    assert [name for name, has_own in names.items() if not has_own and name not in LISTED] == []
    assert [name for name, has_own in names.items() if has_own and name in LISTED] == []


def test_the_list_names_modules_and_test_files_that_exist() -> None:
    known = {module.name.removeprefix("servetop.") for module in modules()}
    assert sorted(set(LISTED) - known) == []
    assert [path for path in LISTED.values() if not (TOP / path).is_file()] == []
