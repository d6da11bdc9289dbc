"""Command lines of this Python, and a module path that does not contain the working directory by accident.

`python -m` and an empty entry of PYTHONPATH put the working directory first on the module path: a file `secrets.py`
there would be executed in place of the standard library's module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping

_VARIABLE = "PYTHONPATH"


def python_argv(*words: str) -> tuple[str, ...]:
    """The command line of this Python with further words, such as `-m` and a module; it ignores modules beside it.

    `-P` leaves out the working directory, or the folder of a script.
    """
    return (sys.executable, "-P", *words)


def drop_empty_entries(environment: MutableMapping[str, str], path: list[str]) -> None:
    """Remove empty entries of PYTHONPATH, and the working directory that they put on a module path.

    An entry that names the working directory, such as `.`, stays. Call before further modules are imported.
    """
    given = environment.get(_VARIABLE, "")
    named = [each for each in given.split(os.pathsep) if each]
    cleaned = os.pathsep.join(named)
    if cleaned == given:
        return
    environment[_VARIABLE] = cleaned  # Python ignores an empty variable
    try:
        here = os.getcwd()
    except FileNotFoundError:  # a deleted folder has no modules
        return
    if here not in map(os.path.abspath, named):
        path[:] = [each for each in path if each not in ("", here)]
