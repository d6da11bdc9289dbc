"""Measures servetop as a whole on the simulator: `python bench/whole.py [--pairs 10] [--seconds 20]`.

Prints the CPU use of the dashboard process in a real terminal, and the effect of the dashboard on a run: the same load
with and without it, in turn.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import math
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from servetop.core.arrays import FloatArray
from servetop.recordings.read.reader import RecordingReader

SERVETOP = (sys.executable, "-m", "servetop")
ROWS, COLUMNS = 48, 160


@dataclass
class Terminal:
    """A servetop process in a pseudo-terminal of 160×48."""

    process: subprocess.Popen[bytes]
    screen: int

    def read(self, seconds: float) -> bytes:
        """Return what is drawn within a time; empty if nothing is."""
        ready, _, _ = select.select([self.screen], [], [], seconds)
        with contextlib.suppress(OSError):  # it has ended
            return os.read(self.screen, 1 << 16) if ready else b""
        return b""

    def drain(self, seconds: float) -> int:
        """Read for a time; return the bytes drawn."""
        deadline, drawn = time.perf_counter() + seconds, 0
        while (left := deadline - time.perf_counter()) > 0:
            drawn += len(self.read(min(left, 0.1)))
        return drawn

    def press(self, keys: bytes) -> None:
        """Send keys."""
        os.write(self.screen, keys)


@contextlib.contextmanager
def terminal(
    *words: str, program: tuple[str, ...] = SERVETOP, environment: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Start a program in a terminal, with additions to the environment, and end it afterwards."""
    screen, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    whole = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"} | dict(environment or {})
    process = subprocess.Popen([*program, *words], stdin=child, stdout=child, stderr=child, env=whole)
    os.close(child)
    try:
        yield Terminal(process, screen)
    finally:
        process.terminate()
        process.wait()
        os.close(screen)


def quit_dashboard(screen: Terminal) -> None:
    """Press q, and c in case the run is still going."""
    for key in (b"q", b"c"):
        screen.press(key)
        deadline = time.perf_counter() + 1.0
        while time.perf_counter() < deadline and screen.process.poll() is None:
            screen.read(0.05)
    while screen.process.poll() is None:
        screen.read(0.05)


def load(seconds: float, seed: int) -> list[str]:
    """Return the options of the load that is run with and without a dashboard."""
    lengths = ["--input-len", "128", "--output-len", "128"]
    return ["--request-rate", "16", *lengths, "--duration", f"{seconds:g}", "--seed", str(seed)]


def with_dashboard(recording: Path, seconds: float, seed: int) -> tuple[float, float]:
    """Run with the dashboard; return its CPU use (0-1) while the load runs, and bytes drawn per second."""
    with terminal(*load(seconds, seed), "--record", str(recording)) as screen:
        screen.drain(3.0)  # loading, first frames
        process, drawn = psutil.Process(screen.process.pid), 0
        before, began = process.cpu_times(), time.perf_counter()
        drawn += screen.drain(seconds - 3.0)
        after, took = process.cpu_times(), time.perf_counter() - began
        screen.drain(8.0)  # drain
        quit_dashboard(screen)
    return (after.user + after.system - before.user - before.system) / took, drawn / took


def headless(recording: Path, seconds: float, seed: int) -> None:
    """Repeat the run without a dashboard."""
    words = [*SERVETOP, *load(seconds, seed), "--headless", "--record", str(recording)]
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def request_ttfts(recording: Path) -> FloatArray:
    """Return the TTFT of every request with a token, in ms."""
    reader = RecordingReader.open(recording)
    try:
        found = [record.ttft for record in reader.requests(0.0, math.inf)]
    finally:
        reader.close()
    return np.array([ttft * 1e3 for ttft in found if ttft is not None])


def output_throughput(recording: Path) -> float:
    """Return the run's tokens per second from its summary."""
    found = subprocess.run([*SERVETOP, "summary", str(recording), "--json"], capture_output=True, check=True)
    return float(json.loads(found.stdout)["output_throughput"])


def main() -> None:
    """Measure and print one line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        compare(Path(scratch), options.pairs, options.seconds)


def compare(folder: Path, pairs: int, seconds: float) -> None:
    """Alternate runs with and without the dashboard, each pair with its own seed.

    TTFT percentiles are of the requests of all runs together: a single run has only a few requests above its
    p99, which varies by 5 % between two equal runs.
    """
    shares, bytes_drawn, throughputs, ttfts = [], [], [], []
    for seed in range(pairs):
        seen, unseen = folder / f"seen-{seed}.servetop", folder / f"unseen-{seed}.servetop"
        share, drawn = with_dashboard(seen, seconds, seed)
        headless(unseen, seconds, seed)
        shares.append(share)
        bytes_drawn.append(drawn)
        throughputs.append([output_throughput(seen), output_throughput(unseen)])
        ttfts.append([request_ttfts(seen), request_ttfts(unseen)])
    print(f"dashboard process, share of a core{statistics.median(shares):8.1%}      (target ≤ 25 %)")
    print(f"terminal output                   {statistics.median(bytes_drawn) / 1e3:7.1f} KB/s")
    with_it, without = np.median(throughputs, axis=0)
    _compared("output throughput, tok/s", with_it, without, "(median; target: within 2 %)")
    watched, alone = (np.concatenate(runs) for runs in zip(*ttfts, strict=True))
    for q, target in ((99, "; target: within 2 %"), (50, "")):
        note = f"(of {alone.size:,} requests{target})"
        _compared(f"TTFT p{q}, ms", np.percentile(watched, q), np.percentile(alone, q), note)


def _compared(name: str, with_it: float, without: float, note: str) -> None:
    print(f"{name:<25} with {with_it:9.2f}  without {without:9.2f}  {with_it / without - 1:+7.2%}  {note}")


if __name__ == "__main__":
    main()
