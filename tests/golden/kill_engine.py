"""Kill the engine that a run started, five seconds after its first token: `kill_engine.py RECORDING RUN_PID`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import psutil

from tests.harness import opened, received, wait_for


def main(recording: Path, run: int) -> None:
    """Its own descendants are the only processes that it looks at."""
    reader = wait_for(lambda: opened(recording), seconds=60, what="the recording")
    wait_for(lambda: received(reader), seconds=180, what="the first tokens")
    enough = reader.ticks()[-1].end + 5.0
    wait_for(lambda: reader.ticks()[-1].end > enough, seconds=30, what="five seconds of load")
    for child in psutil.Process(run).children(recursive=True):
        if "vllm.entrypoints" in " ".join(child.cmdline()):
            os.kill(child.pid, signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
