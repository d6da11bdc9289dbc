"""Pairs of runs of the simulator in real time with equal seeds, while every processor of the machine is busy."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from servetop.analysis.comparison.alignment import ArmRun
from tests.comparisons.drawn_runs import loaded

MOST_PAIRS = 10
"""Pairs that are measured at most: each takes about 40 s, however fast the machine."""
_LOAD = ("--request-rate", "20", "--duration", "14", "--input-len", "128", "--output-len", "64")
_UNJUDGED = 99
"""Exit code of a run that was measured but whose client was the bottleneck."""


def busy_pair(seed: int) -> tuple[ArmRun, ArmRun]:
    """Measure two starts of one simulator, one after the other; CalledProcessError if a run fails."""
    with _busy_processors(), tempfile.TemporaryDirectory() as folder:
        first, second = (_measured(Path(folder) / f"{name}.servetop", seed=seed) for name in "ab")
    return first, second


def _measured(recording: Path, *, seed: int) -> ArmRun:
    run = ("--headless", "--engine", "sim", *_LOAD, "--seed", str(seed), "--record", str(recording))
    done = subprocess.run((sys.executable, "-m", "servetop", *run), capture_output=True, check=False)
    if done.returncode not in (0, _UNJUDGED):
        raise subprocess.CalledProcessError(done.returncode, run, stderr=done.stderr)
    return loaded(recording)


@contextlib.contextmanager
def _busy_processors() -> Iterator[None]:
    """Keep one process for each processor busy."""
    processes = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
