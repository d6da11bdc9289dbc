"""The simulator under load for an hour with the dashboard open: no process may grow.

`python -m tests.chaos.soak [--minutes 60] [--rate 200] [--report docs/reliability.md]`
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.case import Case
from tests.chaos.invariants import read
from tests.chaos.place import Place
from tests.chaos.processes import marked, until
from tests.chaos.report import commit, replace_between
from tests.chaos.viewers import Terminal, dashboard

BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
SETTLING = 300.0
"""Seconds in which processes may reach their size."""
ALLOWED = 0.05
"""Growth after that, as a share."""
SAMPLE_EVERY = 5.0
ROLES = {
    "watchdog.py": "",  # the watcher beside an engine: nothing that grows
    "servetop.run.run_process": "run",
    "servetop.run.process.sender_program": "sender",
    "servetop.simulator": "engine (simulator)",
    "-m servetop ": "dashboard",
}
"""Roles by a word of the command line; the first that fits."""


@dataclass
class Memory:
    """Resident bytes of each role's process over time."""

    samples: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))

    def take(self, at: float, pids: Mapping[int, str]) -> None:
        for pid, command in pids.items():
            role = next((role for word, role in ROLES.items() if word in command), "")
            if role:
                with contextlib.suppress(OSError):
                    pages = int(Path("/proc", str(pid), "statm").read_text().split()[1])
                    self.samples[role].append((at, pages * os.sysconf("SC_PAGE_SIZE")))

    def growth(self, role: str, *, settling: float) -> tuple[float, float, float]:
        """Medians of the minute after settling and of the last minute in MiB, and by what share they differ."""
        last = self.samples[role][-1][0]
        first = [size for at, size in self.samples[role] if settling <= at <= settling + 60.0]
        final = [size for at, size in self.samples[role] if at >= last - 60.0]
        before, after = (sorted(sizes)[len(sizes) // 2] / 2**20 for sizes in (first, final))
        return before, after, after / before - 1.0


def main(argv: Sequence[str]) -> int:
    options = parsed(argv)
    folder = Path(tempfile.mkdtemp(prefix="servetop-soak-"))
    try:
        place = Place(Case("soak", 0, 0, os.getpid()), folder)
        memory = soaked(place, seconds=60.0 * options.minutes, rate=options.rate)
        text, failed = judged(memory, place, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(text)
    if options.report:
        replace_between(Path(options.report), text, BEGIN, END)
    return 1 if failed else 0


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=200, help="requests per second")
    parser.add_argument("--settling", type=float, default=SETTLING, help="seconds in which growth does not count")
    parser.add_argument("--report", default="")
    return parser.parse_args(argv)


LOAD = ("--input-len", "16", "--output-len", "8", "--max-num-seqs", "512", "--max-concurrency", "256")
"""A short pause of the machine must not become a queue of requests in flight, for which sender and engine would rightly
take memory: they wait at the client instead."""


def soaked(place: Place, *, seconds: float, rate: int) -> Memory:
    """Play the load with the dashboard open, looking at each process now and then; then quit it."""
    words = ["--duration", f"{seconds + 120:.0f}", "--request-rate", str(rate), *LOAD]
    memory = Memory()
    with dashboard(place, [*words, "--record", str(place.recording)]) as terminal:
        until(lambda: place.recording.exists() or terminal.over(), seconds=60.0)
        began, last_line = time.monotonic(), 0.0
        while (at := time.monotonic() - began) < seconds and not terminal.over():
            memory.take(at, marked(place.mark))
            if at - last_line > 60.0:
                last_line = at
                sizes = {role: samples[-1][1] >> 20 for role, samples in memory.samples.items()}
                say(f"soak: {at / 60:.0f} min, MiB: {sizes}")
            time.sleep(SAMPLE_EVERY)
        _quit(terminal)
    return memory


def _quit(terminal: Terminal) -> None:
    def ended() -> bool:
        terminal.press(b"q")
        time.sleep(1.0)
        terminal.press(b"d")
        time.sleep(1.0)
        return terminal.over()

    until(ended, seconds=120.0)


def judged(memory: Memory, place: Place, options: argparse.Namespace) -> tuple[str, bool]:
    """A table in Markdown, and whether something grew, or was lost."""
    recorded = read(place.recording)
    assert recorded is not None, "no recording"
    ok, rows = len(recorded.ok), len(recorded.requests)
    sent = sum(tick.client.sent for tick in recorded.ticks)
    failed = recorded.end is None or ok < 0.99 * rows or sent > rows
    load = f"{options.minutes:g} minutes at {options.rate} requests/s on the simulator, dashboard open"
    lines = [
        f"{datetime.now(UTC):%Y-%m-%d}, commit {commit()}, {load}:",
        f"{sent:,} requests sent, {rows:,} recorded, {ok:,} ok.",
        "",
        f"| process | MiB after {options.settling / 60:.0f} min | MiB at the end | growth |",
        "|---|---|---|---|",
    ]
    for role in memory.samples:
        before, after, share = memory.growth(role, settling=options.settling)
        failed |= share > ALLOWED
        lines.append(f"| {role} | {before:.1f} | {after:.1f} | {share:+.1%} |")
    return "\n".join(lines), failed


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
