"""The simulator's server as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys


def start(*options: str) -> tuple[subprocess.Popen[str], str]:
    """The process and its URL, once it is ready; time goes 50 times as fast."""
    command = [sys.executable, "-m", "servetop.engines.sim.server", "--port", "0", "--time-scale", "0.02", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = ""
    for line in process.stderr:
        if "http://" in line:
            url = line.rpartition(" ")[2].strip()
        if "ready" in line:
            return process, url
    raise AssertionError("the server ended before it was ready")


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> int:
    """Ask it to end; its exit code, after no traceback."""
    process.send_signal(number)
    _, rest = process.communicate(timeout=10)
    assert "Traceback" not in rest
    return process.returncode
