"""Ctrl-C before anything has begun."""

from __future__ import annotations

import signal
import subprocess
import sys

INTERRUPTED_WHILE_LOADING = """
import os, signal, sys
from servetop.cli.entry import main

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "servetop.cli.options":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
main()
"""


def test_ctrl_c_while_the_command_line_loads_ends_it_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_WHILE_LOADING], capture_output=True, text=True)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == ""
