"""A viewer leaves its screen before it ends, and ends at once at a second signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from servetop.cli.viewing.viewer_signals import ViewerSignals


@pytest.mark.parametrize(
    ("number", "result"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_ends_the_viewer_and_is_forwarded(number: signal.Signals, result: str) -> None:
    passed_on: list[signal.Signals] = []
    signals = ViewerSignals(passed_on.append)
    before = signal.getsignal(number)
    with signals.caught():
        assert signals.exit_requested() == ""
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    assert signals.exit_requested() == result
    assert passed_on == [number, number]
    assert signal.getsignal(number) == before


def test_a_busy_viewer_without_a_run_ends_at_the_second_signal() -> None:
    script = (
        "import os, signal\n"
        "from servetop.cli.viewing.viewer_signals import ViewerSignals\n"
        "with ViewerSignals().caught():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('busy', flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('still busy')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "busy\n"
    assert done.returncode == -signal.SIGTERM
