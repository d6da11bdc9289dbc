"""The command that starts an engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.engines.adapters.launch_argv import checked, module_argv, program_argv, refuse_containers, safe_path

HOW = "pip install it"


def config(*command: str, launcher: str = "") -> EngineConfig:
    return EngineConfig(name="vllm", command=command, launcher=launcher)


def program_in(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_folder_is_an_environment_whose_program_is_preferred_to_its_python(tmp_path: Path) -> None:
    python = program_in(tmp_path, "bin/python")
    assert checked([str(tmp_path)], program="vllm") == [str(python)]
    program = program_in(tmp_path, "bin/vllm")
    assert checked([str(tmp_path)], program="vllm") == [str(program)]


def test_a_folder_without_a_program_is_an_error_with_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "vllm").write_text("not executable")
    with pytest.raises(EngineError, match="has no bin/vllm and no vllm and no bin/python"):
        checked([str(tmp_path)], program="vllm")


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(EngineError, match="/no/such cannot be found or run: check --engine-command"):
        checked(["/no/such", "serve"])


def test_a_program_comes_from_the_path_unless_a_command_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"vLLM was not found \(no vllm on the PATH\): pip install it"):
        program_argv(config(), "vllm", title="vLLM", how=HOW)
    program = program_in(tmp_path, "vllm")
    assert program_argv(config(), "vllm", title="vLLM", how=HOW) == [str(program)]
    assert program_argv(config(sys.executable, "-m", "x"), "vllm", title="vLLM", how=HOW) == [sys.executable, "-m", "x"]


def test_a_module_runs_in_this_python_or_in_the_given_one() -> None:
    assert module_argv(config(), "json.tool", title="J", how=HOW) == [sys.executable, "-P", "-m", "json.tool"]
    assert module_argv(config(sys.executable), "x", title="X", how=HOW) == [sys.executable, "-m", "x"]
    assert module_argv(config(sys.executable, "x.py"), "x", title="X", how=HOW) == [sys.executable, "x.py"]
    with pytest.raises(EngineError, match="X was not found: pip install it, or try --engine sim"):
        module_argv(config(), "no_such_module_here", title="X", how=HOW)


def test_a_module_in_the_given_python_gets_no_modules_of_the_working_directory() -> None:
    """By a variable, which a Python without `-P` ignores; a complete command stays as it is."""
    of_the_user = config("/opt/vllm/bin/python")
    assert safe_path(["/opt/vllm/bin/python", "-m", "x", "serve"], of_the_user) == {"PYTHONSAFEPATH": "1"}
    assert safe_path(["/opt/vllm/bin/vllm", "serve"], config("/opt/vllm")) == {}
    assert safe_path(["python", "-m", "x"], config("python", "-m", "x")) == {}
    assert safe_path(module_argv(config(), "json.tool", title="J", how=HOW), config()) == {}


def test_a_launcher_runs_what_its_image_has() -> None:
    inside = config(launcher="podman run")
    assert program_argv(inside, "vllm", title="vLLM", how=HOW) == ["vllm"]
    assert module_argv(inside, "mii", title="MII", how=HOW) == ["python3", "-m", "mii"]
    with pytest.raises(UsageError, match="MII is started by a script that its image does not have"):
        refuse_containers(inside, "MII")
    refuse_containers(config(), "MII")
