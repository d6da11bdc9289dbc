"""Measures a watch of many servers: `python bench/watch.py [--servers 50] [--seconds 60]`.

The servers are pages of one process on the loopback interface, which count tokens. Prints the CPU share and memory of
the watch, without a dashboard; nothing passes or fails.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from tests.watched_server import WatchedServer, watched_server

SERVETOP = (sys.executable, "-m", "servetop")


def serve(servers: list[WatchedServer], stopped: threading.Event) -> None:
    """Count tokens at all servers until stopped."""
    while not stopped.wait(0.2):
        for server in servers:
            server.serve(requests=1, tokens=50)


def measure(urls: list[str], seconds: float, folder: Path) -> str:
    """Return the CPU share and the memory of a watch from its second quarter on."""
    recording = folder / "watch.servetop"
    command = (
        *SERVETOP,
        "watch",
        *urls,
        "--headless",
        "--duration",
        f"{seconds + 30:.0f}s",
        "--record",
        str(recording),
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds / 4)
        watch = psutil.Process(process.pid)
        before, began = sum(watch.cpu_times()[:2]), time.monotonic()
        time.sleep(seconds * 3 / 4)
        share = (sum(watch.cpu_times()[:2]) - before) / (time.monotonic() - began)
        memory = watch.memory_info().rss / 1e6
        process.terminate()
        process.wait(timeout=60)
    size = recording.stat().st_size / 1e6
    return f"{share:.1%} of a core, {memory:.0f} MB of memory, {size:.1f} MB recorded in {seconds:.0f} s"


def main() -> None:
    """Measure, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    stopped = threading.Event()
    with contextlib.ExitStack() as running, tempfile.TemporaryDirectory() as folder:
        servers = [running.enter_context(watched_server()) for _ in range(options.servers)]
        counting = threading.Thread(target=serve, args=(servers, stopped))
        counting.start()
        try:
            measured = measure([each.url for each in servers], options.seconds, Path(folder))
            print(f"a watch of {options.servers} servers: {measured}")
        finally:
            stopped.set()
            counting.join()


if __name__ == "__main__":
    main()
