"""tests/slow_tests.txt names tests that exist, and the options that it is for select what they say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clean_environment import MACHINE
from tests.house.source_tree import TOP
from tests.slow_tests import LIST, function_of, slow_tests

LISTED = sorted(slow_tests())
SAMPLE = """
import pytest

@pytest.mark.parametrize("number", range(2))
def test_long_in_all(number):
    pass

def test_short():
    pass
"""
CONFTEST = """
import pytest
from tests.slow_tests import pytest_addoption, pytest_collection_modifyitems, pytest_configure

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    report.duration = 0.3 if "long" in report.nodeid and report.when == "call" else 0.0
"""
"""Gives each test its seconds, whatever it takes."""


def functions(path: Path) -> set[str]:
    """The test functions of a file, those of a class after its name."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
    return found


def test_the_listed_tests_exist() -> None:
    """A test that is renamed or removed leaves the list too: `make slow-tests`, or by hand."""
    files = {name.partition("::")[0] for name in LISTED}
    known = {f"{file}::{name}" for file in files if (TOP / file).is_file() for name in functions(TOP / file)}
    assert set(LISTED) - known == set()


def test_the_list_is_sorted() -> None:
    assert LIST.read_text(encoding="utf-8").split() == LISTED


@pytest.mark.parametrize(
    ("node_id", "function"),
    [("tests/a.py::test_b", "tests/a.py::test_b"), ("tests/a.py::test_b[c::d[e]]", "tests/a.py::test_b")],
)
def test_parameters_are_not_part_of_the_function(node_id: str, function: str) -> None:
    assert function_of(node_id) == function


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of two tests with these options and a list of its own."""
    package = tmp_path / "tests"
    package.mkdir()
    (package / "slow_tests.py").write_text((TOP / "tests" / "slow_tests.py").read_text(encoding="utf-8"))
    (package / "slow_tests.txt").write_text("")
    (package / "test_sample.py").write_text(SAMPLE)
    (package / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\ntestpaths = ['tests']\n")
    return tmp_path


def passed(suite: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *options]
    done = subprocess.run(command, cwd=suite, capture_output=True, text=True, env=MACHINE, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()[-1].partition(" in ")[0]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_options_list_and_select_slow_tests(suite: Path, workers: str) -> None:
    assert passed(suite, "--write-slow-tests", "-n", workers) == "3 passed"
    assert (suite / "tests" / "slow_tests.txt").read_text() == "tests/test_sample.py::test_long_in_all\n"
    assert passed(suite, "--quick") == "1 passed, 2 deselected"
    assert passed(suite, "--slow") == "2 passed, 1 deselected"
    assert passed(suite, "--quick", "--write-slow-tests") == "1 passed, 2 deselected"
    assert (suite / "tests" / "slow_tests.txt").read_text() == "tests/test_sample.py::test_long_in_all\n"
