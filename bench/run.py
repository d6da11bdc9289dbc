"""Measure everything and write docs/performance.md: `make bench`, about ten minutes on two cores.

Figures are those of the machine and the hour; compare ratios within one run. Nothing here decides a test.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"


@dataclass(frozen=True)
class Part:
    """One script, and what it shows."""

    title: str
    script: str
    why: str
    arguments: tuple[str, ...] = ()


PARTS = (
    Part(
        "The whole command",
        "whole.py",
        "Start-up, what the dashboard costs, and what it does to the run that it shows: the same load on the simulator "
        "with and without it, in turn.",
    ),
    Part("The dashboard", "tui.py", "A canned run drawn at 160×48; refresh is processor time."),
    Part(
        "The simulator's server",
        "sim_server.py",
        "256 streams; lateness is how long after its own schedule a token was written. Target: 5,000 tokens/s on one "
        "core with p99 ≤ 5 ms.",
    ),
    Part("The recording", "recordings.py", "One writer, one reader, 1,000 requests a second.", ("5",)),
    Part(
        "The client",
        "client.py",
        "servetop's sender against a server in C that logs what it really did, request by request.",
    ),
)


def measured(part: Part) -> str:
    """A section of the page: the command, and what it printed."""
    command = " ".join(["python", f"bench/{part.script}", *part.arguments])
    print(f"servetop bench: {command}", flush=True)
    words = [sys.executable, str(ROOT / "bench" / part.script), *part.arguments]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    output = done.stdout.strip() if done.returncode == 0 else f"{done.stdout}{done.stderr}".strip()
    print(output, flush=True)
    return f"## {part.title}\n\n{part.why}\n\n```\n$ {command}\n{output}\n```\n"


def main() -> None:
    """Run all parts, one after the other, and write the page."""
    machine = (
        f"{platform.processor() or platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}"
    )
    load = os.getloadavg()[0]
    head = (
        "# Performance\n\nWritten by `make bench`; run it to get the figures of your machine. "
        f"This page: {machine}, load average at the start {load:.1f}.\n\n"
        "The sender asks for a higher priority (niceness −10) where the system allows it: on a machine that it shares "
        "with the engine, a sender that waits for a processor measures its own waiting. The trust meter says when "
        "it did.\n"
    )
    PAGE.write_text("\n".join([head, *(measured(part) for part in PARTS)]), encoding="utf-8")


if __name__ == "__main__":
    main()
