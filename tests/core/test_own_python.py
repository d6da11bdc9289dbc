"""Modules of the working directory are not executed by servetop's own processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from servetop.core.system.own_python import drop_empty_entries, python_argv
from tests.poisoned_folder import PoisonedFolder, module_names


@pytest.fixture
def poisoned(tmp_path: Path) -> PoisonedFolder:
    return PoisonedFolder(tmp_path / "poisoned", module_names())


def test_a_module_of_the_working_directory_is_ignored(poisoned: PoisonedFolder) -> None:
    argv = python_argv("-m", "json.tool", "--help")
    done = subprocess.run(argv, cwd=poisoned.path, capture_output=True, text=True, check=False)
    assert (done.returncode, poisoned.executed) == (0, ""), done.stderr


def test_a_module_beside_a_script_is_ignored(poisoned: PoisonedFolder, tmp_path: Path) -> None:
    script = poisoned.path / "script.py"
    script.write_text("import secrets, textwrap\n")
    done = subprocess.run(python_argv(str(script)), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, poisoned.executed) == (0, ""), done.stderr


@pytest.mark.parametrize(
    ("given", "left", "path"),
    [
        (":/lib", "/lib", ["/lib", "/std"]),
        ("/lib::", "/lib", ["/lib", "/std"]),
        (":", "", ["/std"]),
        ("/lib", "/lib", ["", "{here}", "/lib", "/std"]),
        (":.:/lib", ".:/lib", ["", "{here}", "/lib", "/std"]),
        (":{here}", "{here}", ["", "{here}", "/std"]),
        ("", "", ["", "{here}", "/std"]),
        (None, None, ["", "{here}", "/std"]),
    ],
)
def test_only_the_working_directory_of_an_empty_entry_is_removed(
    given: str | None, left: str | None, path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = os.getcwd()
    environment = {} if given is None else {"PYTHONPATH": given.format(here=here)}
    modules = ["", here, *(["/lib"] if "/lib" in (given or "") else []), "/std"]
    drop_empty_entries(environment, modules)
    assert environment.get("PYTHONPATH") == (left and left.format(here=here))
    assert modules == [each.format(here=here) for each in path]


def test_a_deleted_working_directory_is_no_error(tmp_path: Path) -> None:
    folder = tmp_path / "deleted"
    folder.mkdir()
    code = (
        "import os, sys; from servetop.core.system.own_python import drop_empty_entries; "
        "os.rmdir(sys.argv[1]); drop_empty_entries(os.environ, sys.path); print(os.environ['PYTHONPATH'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ":/lib"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "/lib\n"), done.stderr
