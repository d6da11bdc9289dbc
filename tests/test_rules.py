"""What `make check` refuses: the rules that a reviewer would otherwise have to remember."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent


def _refused(source: str, path: str) -> bool:
    """Ruff refuses the file with that content."""
    options = ("--select", "TID251,T20", "--no-cache", "--stdin-filename", path, "-")
    argv = [sys.executable, "-m", "ruff", "check", *options]
    done = subprocess.run(argv, input=source, text=True, cwd=TOP, capture_output=True, check=False)
    assert done.stdout, f"Ruff did not run: {done.stderr}"
    return done.returncode == 1


@pytest.mark.parametrize(
    "source",
    [
        "print('text')",
        "import sys\nsys.stdout.write('text')",
        "import sys\nsys.stderr.writelines(['text'])",
        "from sys import stderr\nstderr.write('text')",
        "import sys\nout = sys.__stdout__",
        "import click\nclick.secho('text')",
        "from rich import print\nprint('text')",
        "from rich.console import Console\nConsole().print('text')",
        "from textual.widgets import Static\nStatic('text')",
        "import traceback\ntraceback.print_exc()",
    ],
)
def test_text_reaches_a_terminal_through_the_gate_alone(source: str) -> None:
    assert _refused(f"{source}\n", "cli/servetop/cli/new.py")


@pytest.mark.parametrize(
    "package", ["core", "analysis", "workload", "engines", "simulator", "loadgen", "recordings", "tui", "run"]
)
def test_that_holds_in_every_package(package: str) -> None:
    assert _refused("import sys\nsys.stdout.write('text')\n", f"{package}/servetop/{package}/new.py")


def test_the_gate_itself_may_write() -> None:
    assert not _refused("import sys\nsys.stdout.write('text')\n", "run/servetop/run/console.py")
