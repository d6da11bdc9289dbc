"""A working directory whose Python files must not be executed: each leaves a mark, then fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.house.source_tree import ROOMS

PLUG_IN = "poisoned-plug-in"
"""The engine that the folder declares as an installed distribution would."""
_FILE = """\
import sys
with open({marks!r}, "a") as marks:
    print({name!r}, "executed by", *sys.argv, file=marks)
raise ImportError("executed: " + {name!r})
"""


def module_names() -> frozenset[str]:
    """The top-level names that servetop, its packages and the standard library import, and those of Python's start."""
    start = {"servetop", "sitecustomize", "usercustomize", "poisoned_plug_in"}
    found = {*sys.stdlib_module_names, *packages_distributions(), *ROOMS, *start}
    return frozenset(name for name in found if name.isidentifier())


def imported_by_python() -> frozenset[str]:
    """The names that `python -m servetop` imports before servetop's first line, the working directory included."""
    code = "import runpy, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split()) | {"servetop"}


class PoisonedFolder:
    """The folder; it has a file of every name in `names`, and a distribution with an engine."""

    def __init__(self, path: Path, names: Collection[str]) -> None:
        self.path = path
        self._marks = path / "marks"
        path.mkdir()
        for name in names:
            (path / f"{name}.py").write_text(_FILE.format(marks=str(self._marks), name=name))
        (path / "poison.pth").write_text("import poisoned_plug_in\n")
        metadata = path / "poisoned_plug_in-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: poisoned-plug-in\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[servetop.engines]\n{PLUG_IN} = poisoned_plug_in:Engine\n")

    @property
    def executed(self) -> str:
        """A line for each execution of a file: its name, and the command line of the process."""
        return self._marks.read_text() if self._marks.exists() else ""
