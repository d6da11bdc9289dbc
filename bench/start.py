"""Measures servetop's start-up time, compared with Python and Textual: `python bench/start.py [--rounds 9]`.

In every round each command runs once, in turn. It prints medians, and the median of the ratios within a round, because
times vary with machine and time of day, but ratios hardly do. Processor time is that of the whole process tree.

- `--help`, `--version`: until the process has ended. Compared with `python -c pass`.
- first request: until it has arrived at a server in this process, from the start of the command; the server has
  responded to the run's earlier requests. Compared with `python -c pass`.
- first frame: until the first and the last line of the screen have been drawn in a terminal of 160x48: the whole
  layout is complete. Compared with an App of Header, Static and Footer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from whole import SERVETOP, quit_dashboard, terminal

MARK = "▸".encode()
GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden" / "whitepaper.servetop"
MINIMAL = """
from textual.app import App
from textual.widgets import Footer, Header, Static
class Minimal(App):
    TITLE = "first line"
    BINDINGS = [("q", "quit", "last line")]
    def compose(self):
        yield Header()
        yield Static("text")
        yield Footer()
Minimal().run()
"""
PYTHON_ALONE, TEXTUAL_ALONE = "python -c pass", "a minimal Textual app, first frame"
ANSWERS = {
    b"/v1/models": json.dumps({"object": "list", "data": [{"id": "tiny", "object": "model"}]}).encode(),
    b"/v1/completions": b'data: {"choices":[{"index":0,"text":"x","finish_reason":"length"}],'
    b'"usage":{"prompt_tokens":16,"completion_tokens":1}}\n\ndata: [DONE]\n\n',
}


@dataclass(frozen=True)
class Spent:
    """Wall and processor seconds of one start."""

    wall: float
    processor: float


@dataclass(frozen=True)
class Start:
    """A command, the one it is compared with, and the target ratio of wall time."""

    name: str
    measure: Callable[[], Spent]
    beside: str
    target: float | None = None


class FirstRequestServer:
    """Serves a loopback port, one thread per connection, and records when the first completion is requested."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        self.asked = threading.Event()
        self.asked_at = 0.0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as lines:
            while request := lines.readline():
                path = request.split()[1]
                if request.startswith(b"POST") and not self.asked.is_set():
                    self.asked_at = time.perf_counter()
                    self.asked.set()
                length = 0
                while (line := lines.readline().lower()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    length = int(value) if name == b"content-length" else length
                lines.read(length)
                body = ANSWERS.get(path)
                head = b"HTTP/1.1 200 OK\r\n" if body else b"HTTP/1.1 404 Not Found\r\n"
                kind = b"text/event-stream" if path.endswith(b"completions") else b"application/json"
                body = body or b"{}"
                connection.sendall(b"%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (head, kind, len(body)) + body)


def processor_seconds(pid: int) -> float:
    """Return the processor time used so far by a running process tree."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(OSError):
                threads = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
                total += sum(int(thread.read_text().split()[0]) for thread in threads) * 1e-9
    return total


def until_end(*argv: str) -> Spent:
    """Measure from the start of a command to its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def until_first_request(server: FirstRequestServer, *words: str) -> Spent:
    """Measure from the start of a headless run to the arrival of its first request; the run then completes."""
    server.asked.clear()
    argv = [*SERVETOP, "--headless", "--url", f"http://127.0.0.1:{server.port}", "--num-prompts", "1", *words]
    began = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not server.asked.wait(30.0):
        raise SystemExit("no request came within 30 s")
    used = processor_seconds(process.pid)
    if process.wait():
        raise SystemExit(f"servetop ended with exit code {process.returncode}")
    return Spent(server.asked_at - began, used)


def until_first_frame(*words: str, program: tuple[str, ...] = SERVETOP, lines: tuple[bytes, bytes]) -> Spent:
    """Measure from the start of a program in a terminal until its first and last line have been drawn."""
    began = time.perf_counter()
    with terminal(*words, program=program) as screen:
        seen = b""
        while not all(line in seen for line in lines):
            drawn = screen.read(30.0)
            if not drawn:
                raise SystemExit(f"{' '.join(words)}: no first frame within 30 s")
            seen += drawn
        wall = time.perf_counter() - began
        used = processor_seconds(screen.process.pid)
        quit_dashboard(screen)
    return Spent(wall, used)


def starts(folder: Path, server: FirstRequestServer) -> list[Start]:
    """Return all starts, beginning with those that others are compared with."""
    numbers = iter(range(1_000_000))
    frame = (MARK, b"help")

    def recording() -> tuple[str, str]:
        return "--record", str(folder / f"{next(numbers)}.servetop")

    def first_request(*words: str) -> Spent:
        return until_first_request(server, *words, *recording())

    python = (sys.executable, "-c")
    return [
        Start(PYTHON_ALONE, lambda: until_end(*python, "pass"), PYTHON_ALONE),
        Start("servetop --version", lambda: until_end(*SERVETOP, "--version"), PYTHON_ALONE),
        Start("servetop --help", lambda: until_end(*SERVETOP, "--help"), PYTHON_ALONE, 14.0),
        Start("first request, --engine openai", lambda: first_request("--engine", "openai"), PYTHON_ALONE, 30.0),
        Start("first request, engine recognised", first_request, PYTHON_ALONE),
        Start(
            TEXTUAL_ALONE,
            lambda: until_first_frame(MINIMAL, program=python, lines=(b"first line", b"last line")),
            TEXTUAL_ALONE,
        ),
        Start("servetop, first frame", lambda: until_first_frame(*recording(), lines=frame), TEXTUAL_ALONE, 1.8),
        Start(
            "servetop replay FILE, first frame",
            lambda: until_first_frame("replay", str(GOLDEN), lines=frame),
            TEXTUAL_ALONE,
            1.8,
        ),
    ]


def rounds(measured: list[Start], number: int) -> Iterator[dict[str, Spent]]:
    """Start each command once per round, in turn."""
    for _ in range(number):
        yield {each.name: each.measure() for each in measured}


def main() -> None:
    """Measure, and print one line per start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="starts whose name has this in it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        all_starts = starts(Path(scratch), FirstRequestServer())
        compared = {each.beside for each in all_starts if options.only in each.name}
        chosen = [each for each in all_starts if options.only in each.name or each.name in compared]
        found = list(rounds(chosen, options.rounds))
    print(f"{'medians of ' + str(options.rounds):<36} {'wall ms':>8} {'ratio':>6} {'proc. ms':>9} {'ratio':>6}  target")
    for each in chosen:
        print(row(each, found))


def row(start: Start, found: list[dict[str, Spent]]) -> str:
    """Return one line of the table."""
    pairs = [(each[start.name], each[start.beside]) for each in found]
    wall = statistics.median(one.wall for one, _ in pairs)
    processor = statistics.median(one.processor for one, _ in pairs)
    walls = statistics.median(one.wall / other.wall for one, other in pairs)
    processors = statistics.median(one.processor / other.processor for one, other in pairs)
    goal = "" if start.target is None else f"≤ {start.target:g} x"
    line = f"{start.name:<36} {wall * 1e3:8.0f} {walls:6.1f} {processor * 1e3:9.0f} {processors:6.1f}  {goal}"
    return line.rstrip()


if __name__ == "__main__":
    main()
