"""Measure everything and write docs/performance.md: `make bench`, about an hour on two cores.

Results depend on the machine and the time of day; compare ratios within one run. No test depends on them.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"


@dataclass(frozen=True)
class Part:
    """One script, and a description of what it measures."""

    title: str
    script: str
    why: str
    arguments: tuple[str, ...] = ()


PARTS = (
    Part(
        "Start-up",
        "start.py",
        "Each command in turn, beside `python -c pass` or a minimal Textual app; the first frame is complete when the "
        "first and the last line of the screen have been drawn. CPU time is that of the whole process tree.",
    ),
    Part(
        "The whole command",
        "whole.py",
        "The cost of the dashboard, and its effect on the run that it shows: the same load on the simulator with and "
        "without it, in turn.",
    ),
    Part(
        "The dashboard",
        "tui.py",
        "A canned run drawn at 160×48; refresh is CPU time. From key to screen is until all of it is drawn.",
    ),
    Part(
        "The dashboard on an hour",
        "tui_hour.py",
        "A recording of an hour with 1,000,000 requests: opening it, judging it in the background, showing other "
        "screens, seeking anywhere, and refreshing each screen where the queue is longest. Times of judging, seeking "
        "and refreshing are CPU time.",
    ),
    Part(
        "The simulator's server",
        "sim_server.py",
        "256 streams; lateness is how long after its own schedule a token was written. Target: 10,000 tokens/s with "
        "p99 ≤ 5 ms.",
    ),
    Part(
        "Comparing two recordings",
        "compare.py",
        "`servetop compare` on two recordings of 1,000,000 requests each. Targets: 15 s and 600 MB.",
    ),
    Part(
        "Reading a long recording",
        "memory.py",
        "`summary` and `check` of a recording of two hours and 5,000,000 requests. Target: 900 MB.",
    ),
    Part("The recording", "recordings.py", "One writer, one reader, 1,000 requests/s.", ("5",)),
    Part(
        "The client, compared with others",
        "duel.py",
        "The whole command (`servetop --headless --json`) and other clients in turn, against a server in C that logs "
        "what it really did; medians, and the median of the ratios within each run. Processor time is that of the "
        "whole process tree, from its start to its end. paced256: 256 streams, an event per 10 ms each, 768 requests. "
        "open400: Poisson, 400 requests/s of 32 tokens. closed256: 256 streams as fast as the server can. `--engine "
        "vllm` requests the token count in every event, as vLLM sends it. Targets: paced256 ≤ 0.95 × vLLM's Rust "
        "bench in both dialects; open400 slip p99 ≤ 0.4 ms, TTFT errors p99 ≤ 0.7 ms. Processors are kept from "
        "sleeping (unless `--let-sleep`): wake-up latency belongs to the machine, not to a client. Where the C client "
        "is still late by milliseconds, every client is.",
        ("--seconds", "5"),
    ),
    Part(
        "Beside a real engine",
        "beside.py",
        "Clients in turn against one vLLM that shares the two processors with them, 64 tokens in and out. The engine's "
        "means are those of its own histograms over exactly that run, so the excess is HTTP, the client, and its wait "
        "for a processor. Targets for servetop on the quiet machine: excess ≤ 3 ms, loop lag and slip p99 ≤ 1 ms, and "
        "engine times that are not worse than under the other clients. vLLM's benchmark in Rust, which verifies its "
        "prompts by the server's tokenizer, does not run on the tiny model.",
        ("--seconds", "10", "--client", "servetop", "vLLM bench (Python)"),
    ),
    Part(
        "Where the client's time goes",
        "steps.py",
        "One regular event from the socket to the tick. Of a sender's time on plain sockets the kernel's `recvmsg` is "
        "the largest part, and of that the acknowledgement, which the whole sender omits for every other event; the "
        "first rows are Python's share.",
    ),
    Part("How far one sender goes", "limits.py", "Many streams, many requests, memory."),
)


def measured(part: Part) -> str:
    """Return a section of the page: the command and its output."""
    command = shlex.join(["python", f"bench/{part.script}", *part.arguments])
    print(f"servetop bench: {command}", flush=True)
    words = [sys.executable, str(ROOT / "bench" / part.script), *part.arguments]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    output = done.stdout.strip() if done.returncode == 0 else f"{done.stdout}{done.stderr}".strip()
    print(output, flush=True)
    return f"## {part.title}\n\n{part.why}\n\n```\n$ {command}\n{output}\n```\n"


def main() -> None:
    """Run the parts in turn and write the page; with --only, replace those sections only."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=[part.script for part in PARTS])
    only = parser.parse_args().only
    if only is None:
        PAGE.write_text("\n".join([head(), *(measured(part) for part in PARTS)]), encoding="utf-8")
        return
    for part in PARTS:
        if part.script in only:
            PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), measured(part)), encoding="utf-8")


def head() -> str:
    """Return the head of the page, with the machine."""
    name = platform.processor() or platform.machine()
    machine = f"{name}, {psutil.cpu_count()} cores, Python {platform.python_version()}"
    return (
        "# Performance\n\nWritten by `make bench`; run it to get the figures of your machine. "
        f"This page: {machine}, load average at the start {os.getloadavg()[0]:.1f}.\n\n"
        "The sender runs in the real-time class where the system permits it ([decision "
        "006](decisions/006-sender-priority.md)): on a machine that it shares with the engine, a sender that waits for "
        "a processor measures its own waiting. The trust panel reports when it did.\n"
    )


def with_section(page: str, section: str) -> str:
    """Return the page with the section of the same title replaced, or appended."""
    title = section.partition("\n")[0]
    sections = re.split(r"(?m)^(?=## )", page)
    titles = [each.partition("\n")[0] for each in sections]
    if title in titles:
        sections[titles.index(title)] = section + "\n"
    else:
        sections.append("\n" + section)
    return "".join(sections).rstrip("\n") + "\n"


if __name__ == "__main__":
    main()
