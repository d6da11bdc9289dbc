"""Ctrl-C before anything has started."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTED_AT_AN_IMPORT = """
import os, signal, sys
AT = sys.argv.pop(1)
from servetop.cli.entry import main

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == AT:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
sys.exit(main())
"""


def interrupted_at(module: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """The command with a Ctrl-C at the moment when it loads a module."""
    words = [sys.executable, "-c", INTERRUPTED_AT_AN_IMPORT, module, *argv]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "module", ["servetop.core.system.own_python", "servetop.run.console", "servetop.cli.options.run_options"]
)
def test_ctrl_c_while_the_command_line_loads_ends_it_without_a_traceback(module: str) -> None:
    done = interrupted_at(module)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == ""


def test_ctrl_c_before_the_run_starts_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "run.servetop"
    done = interrupted_at("servetop.cli.headless.headless", "--headless", "--json", "--record", str(file))
    assert (done.returncode, done.stderr, file.exists()) == (130, "servetop: interrupted\n", False)
    assert json.loads(done.stdout) == {"error": "interrupted", "exit_code": 130}


def test_ctrl_c_while_the_summary_is_made_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "run.servetop"
    load = ("--num-prompts", "3", "--input-len", "2", "--output-len", "2")
    done = interrupted_at("servetop.cli.report.report", "--headless", "--json", *load, "--record", str(file))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["completed"] == 3


INTERRUPTED_AT_A_CALL = """
import os, signal, sys
FILE, NAME = sys.argv.pop(1).split(":")
from servetop.cli.entry import main

def interrupt(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_name == NAME and code.co_filename.endswith(FILE):
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.setprofile(interrupt)
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("cli/entry.py:_loaded_and_run", -signal.SIGINT, ""),
        ("cli/commands.py:command_group", -signal.SIGINT, ""),
        ("click/core.py:__init__", -signal.SIGINT, ""),
        ("cli/main.py:main", 130, "servetop: interrupted\n"),
        ("cli/main.py:_check_text", 130, "servetop: interrupted\n"),
        ("cli/main.py:print_error", 130, "servetop: interrupted\n"),
    ],
)
def test_ctrl_c_at_any_call_before_the_run_ends_it_without_a_traceback(call: str, code: int, said: str) -> None:
    words = [sys.executable, "-c", INTERRUPTED_AT_A_CALL, call, "summary", "no-such-file.servetop"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_does_not_end_a_run(tmp_path: Path, closed: str) -> None:
    file = tmp_path / "run.servetop"
    load = ("--num-prompts", "3", "--input-len", "2", "--output-len", "2", "--record", str(file))
    words = [sys.executable, "-m", "servetop", "--headless", *load]
    done = subprocess.run(["bash", "-c", f'"$@" {closed}', "bash", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Assertion" not in done.stderr
    assert file.exists()
