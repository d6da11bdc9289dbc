"""The workflow of a hosted repository runs what `.ci/run` runs, and the unit tests on every supported Python."""

from __future__ import annotations

import re
import tomllib

from tests.house.source_tree import TOP

WORKFLOW = (TOP / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
COMMANDS = re.findall(r"- run: (.+)", WORKFLOW)
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_it_runs_the_command_of_a_clean_clone_and_targets_that_exist() -> None:
    assert COMMANDS[0] == "bash .ci/run"
    targets = re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    used = [name for command in COMMANDS[1:] for name in re.findall(r"make ([a-z-]+)", command)]
    assert used == ["sbom", "test"]
    assert set(used) <= set(targets)


def test_it_keeps_the_file_that_make_sbom_writes() -> None:
    (kept,) = re.findall(r"^ +path: (dist/.+)$", WORKFLOW, re.MULTILINE)
    assert f"--output-file {kept} " in (TOP / "Makefile").read_text(encoding="utf-8")


def test_each_python_has_its_unit_tests() -> None:
    supported = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert re.findall(r'"(3\.\d+)"', WORKFLOW) == supported


def test_each_folder_of_its_cache_key_exists() -> None:
    (patterns,) = re.findall(r"hashFiles\((.+?)\)", WORKFLOW)
    assert all(any(TOP.glob(each)) for each in re.findall(r"'(.+?)'", patterns))
