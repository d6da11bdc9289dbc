"""Finds an engine's program: that of --engine-command, of the container image, or an installed one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.system.own_python import python_argv


def checked(command: Sequence[str], *, program: str = "python") -> list[str]:
    """Return the arguments of --engine-command; EngineError if its program does not exist.

    A folder is taken as a Python environment: the command is its `program`, else its Python.
    """
    if len(command) == 1 and Path(command[0]).expanduser().is_dir():
        return [_in_environment(Path(command[0]).expanduser(), program)]
    if command and shutil.which(command[0]) is None:
        raise EngineError(f"the engine command {command[0]} cannot be found or run: check --engine-command")
    return list(command)


def _in_environment(folder: Path, program: str) -> str:
    names = dict.fromkeys((f"bin/{program}", program, "bin/python"))
    for path in (folder / name for name in names):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path.absolute())
    raise EngineError(f"{folder} has no {' and no '.join(names)}: check --engine-command")


def program_argv(config: EngineConfig, program: str, *, title: str, how: str) -> list[str]:
    """Return the command of an engine that is a program; EngineError, with `how`, if it is not on the PATH."""
    if config.launcher:
        return list(config.command or (program,))
    if config.command:
        return checked(config.command, program=program)
    found = shutil.which(program)
    if found is None:
        raise EngineError(f"{title} was not found (no {program} on the PATH): {how}, or try --engine sim")
    return [found]


def module_argv(config: EngineConfig, module: str, *, title: str, how: str) -> list[str]:
    """Return the command of an engine that is a Python module; EngineError, with `how`, if it is not installed.

    An --engine-command of one word is a Python interpreter that has the module.
    """
    if config.launcher:
        return list(config.command or ("python3", "-m", module))
    if config.command:
        return [*checked(config.command), *(("-m", module) if len(config.command) == 1 else ())]
    if find_spec(module.partition(".")[0]) is None:
        raise EngineError(f"{title} was not found: {how}, or try --engine sim")
    return [*python_argv("-m", module)]


def safe_path(argv: Sequence[str], config: EngineConfig) -> dict[str, str]:
    """Return the variable that keeps the working directory off the module path of a Python named by the user.

    It is for `-m MODULE` added to an --engine-command of one word; a complete command stays as it is. Python 3.10 and
    older ignore it, and would refuse the option `-P`.
    """
    return {"PYTHONSAFEPATH": "1"} if len(config.command) == 1 and argv[1:2] == ["-m"] else {}


def refuse_containers(config: EngineConfig, title: str) -> None:
    """Raise UsageError for a launcher, if servetop starts the engine by its own script, which no image has."""
    if config.launcher:
        raise UsageError(f"{title} is started by a script that its image does not have: leave out --launcher")
