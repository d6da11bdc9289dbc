"""The sender that is started before the command line is parsed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from servetop.run.process.first_sender import runs_in_this_process

STARTED = """
import subprocess, sys
from servetop.cli.entry import main

started, popen = [], subprocess.Popen

class Watched(popen):
    def __init__(self, argv, **options):
        super().__init__(argv, **options)
        started.append(self)

subprocess.Popen = Watched
sys.argv[1:] = ["--headless", "--request-rate", "nothing"]
code = main()
print(code, [process.returncode for process in started], [process.args[-1] for process in started])
"""


@pytest.mark.parametrize(
    ("argv", "plays"),
    [
        (["--headless"], True),
        (["--engine", "vllm", "--headless", "--", "--model", "x"], True),
        (["sweep", "file.toml", "--headless"], True),
        (["--json"], True),
        (["--url", "http://gpu7:8000", "--json"], True),
        ([], False),
        (["--engine", "vllm", "--", "--headless"], False),
        (["summary", "latest", "--json"], False),
        (["--headless", "--help"], False),
        (["--headless", "--help-all"], False),
        (["--headless", "--detach"], False),
    ],
)
def test_a_command_line_is_recognised_as_a_run_of_this_process(argv: Sequence[str], plays: bool) -> None:
    assert runs_in_this_process(argv) is plays


def test_an_unused_sender_is_ended() -> None:
    done = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "2 [-9] ['servetop.run.process.sender_program']"
    assert "--request-rate" in done.stderr or "rate" in done.stderr
