"""Measures what `--on-episode` costs a watch: `python bench/watch_hook.py [--seconds 60] [--runs 2]`.

The watched server has a queue for six seconds in every twelve. The command takes three seconds: a loop that waited for
it would read the server that much later. Prints how late the metrics were read and the CPU time of the watch, without
and with the command, in turn; nothing passes or fails.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import shlex
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import psutil

from servetop.recordings.read.reader import RecordingReader
from servetop.run.watch.watched_replica import SAMPLE_PERIOD
from tests.watched_server import WatchedServer, watched_server

SERVETOP = (sys.executable, "-m", "servetop")
COMMAND_SECONDS = 3
HALF_CYCLE = 6.0
"""Seconds with a queue, and without."""


@dataclass(frozen=True)
class Measured:
    """How late one watch read its server, and what it took."""

    late: tuple[float, ...]
    """Seconds by which each reading was late, sorted."""
    cpu: float
    """CPU time as a share of a core, without the commands."""
    commands: int

    def __str__(self) -> str:
        p50, p99 = (1e3 * self.late[int(share * (len(self.late) - 1))] for share in (0.5, 0.99))
        return (
            f"{len(self.late)} readings, late by p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {1e3 * self.late[-1]:.1f} ms;"
            f" {self.cpu:.1%} of a core; {self.commands} commands of {COMMAND_SECONDS} s ended"
        )


def queue(server: WatchedServer, stopped: threading.Event) -> None:
    """Let the queue of the server come and go until stopped."""
    while not stopped.wait(HALF_CYCLE):
        server.counts["waiting"] = 0.0 if server.counts["waiting"] else 30.0


def measure(url: str, seconds: float, folder: Path, *, hook: bool) -> Measured:
    """Watch for some seconds."""
    recording, ended = folder / "watch.servetop", folder / "ended"
    script = f"sleep {COMMAND_SECONDS}; echo >> {shlex.quote(str(ended))}"
    options = ("--on-episode", shlex.join(("sh", "-c", script))) if hook else ()
    command = (*SERVETOP, "watch", url, "--headless", "--duration", f"{seconds:g}s", "--record", str(recording))
    with subprocess.Popen((*command, *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        watch, cpu = psutil.Process(process.pid), 0.0
        while process.poll() is None:
            with contextlib.suppress(psutil.Error):
                cpu = sum(watch.cpu_times()[:2])
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.5)
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        starts = [each.scrape_start for each in reader.engine_samples()][1:-1]  # the first and last are at no multiple
    late = sorted(math.fmod(each, SAMPLE_PERIOD) for each in starts)
    commands = ended.read_text().count("\n") if ended.exists() else 0
    return Measured(late=tuple(late), cpu=cpu / seconds, commands=commands)


def main() -> None:
    """Measure, and print a line for each watch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    stopped = threading.Event()
    with watched_server() as server:
        changing = threading.Thread(target=queue, args=(server, stopped))
        changing.start()
        try:
            for hook in (False, True) * options.runs:
                with tempfile.TemporaryDirectory() as folder:
                    found = measure(server.url, options.seconds, Path(folder), hook=hook)
                print(f"{'with' if hook else 'without'} --on-episode: {found}", flush=True)
        finally:
            stopped.set()
            changing.join()


if __name__ == "__main__":
    main()
