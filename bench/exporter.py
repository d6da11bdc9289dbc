"""Measures what `--prometheus-port` costs: `python bench/exporter.py [--seconds 15] [--rounds 3]`.

A run of the simulator, and a watch of a server with the metrics page of a vLLM 0.32, are asked for their page not at
all, four times a second, and every five seconds, in turn. Prints the medians of the processor time of the process that
answers, and of what the pages add to it. Nothing passes or fails.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import psutil
from watch import served_pages

from tests.watched_server import watched_server

SERVETOP = (sys.executable, "-m", "servetop")
RATES = {"no page": 0.0, "4 pages/s": 4.0, "a page every 5 s": 0.2}
LOAD = ("--engine", "sim", "--model", "llama-2-7b", "--request-rate", "8", "--output-len", "64")
START = 10.0
"""Seconds for the start of the command."""


def free_port() -> int:
    """Return a port that no other program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def processor_share(process: psutil.Process, url: str, rate: float, seconds: float) -> float:
    """Return the share of a core that a process takes while its page is asked for at a rate."""
    before, began = sum(process.cpu_times()[:2]), time.monotonic()
    due = began
    while time.monotonic() < began + seconds:
        due = min(due + 1 / rate, began + seconds) if rate else began + seconds
        time.sleep(max(due - time.monotonic(), 0.0))
        if rate:
            with urllib.request.urlopen(url, timeout=10) as response:
                response.read()
    return (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - began)


def measure(command: Sequence[str], folder: Path, *, seconds: float, rounds: int) -> dict[str, list[float]]:
    """Return the shares of a core at each of the rates, a value for each round."""
    port = free_port()
    duration = START + (rounds + 1) * len(RATES) * seconds
    options = ("--headless", "--duration", f"{duration:.0f}s", "--prometheus-port", str(port))
    recording = ("--record", str(folder / f"{port}.servetop"))
    found: dict[str, list[float]] = {name: [] for name in RATES}
    with subprocess.Popen(
        (*SERVETOP, *command, *options, *recording), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            time.sleep(START)
            asked = psutil.Process(process.pid)
            for _ in range(rounds):
                for name, rate in RATES.items():
                    share = processor_share(asked, f"http://127.0.0.1:{port}/metrics", rate, seconds)
                    found[name].append(share)
        finally:
            process.terminate()
            process.wait(timeout=60)
    return found


def main() -> None:
    """Measure, and print a line for each rate of a run and of a watch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        server = running.enter_context(watched_server(keeps_alive=True))
        server.pages = served_pages(0, overloaded=False)
        for title, command in (("a run", LOAD), ("a watch", ("watch", server.url))):
            found = measure(command, folder, seconds=options.seconds, rounds=options.rounds)
            for name, shares in found.items():
                added = [share - idle for share, idle in zip(shares, found["no page"], strict=True)]
                median = statistics.median(shares)
                more = f", {statistics.median(added):+.2%} by the pages" if RATES[name] else ""
                print(f"{title}, {name}: {median:.2%} of a core{more}", flush=True)


if __name__ == "__main__":
    main()
