"""Measures what a watch costs the server it watches: `python bench/watch_cost.py [--server simulator] [--rounds 6]`.

The servers are `servetop serve` and, where `make integration` has installed it, vLLM with a tiny model on the CPU. Each
gets the same requests again and again: alone, beside `servetop watch --headless`, and beside a client that reads its
metrics twenty times a second, in the order alone, watched, often, often, watched, alone. Prints the CPU time of the
server's processes for each; what one reading costs the process that answers, under load and without, which noise of the
machine hides less; how often the watch read; and the product, the part of the server's CPU time that a watch adds.
Nothing passes or fails.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import psutil

from servetop.engines.metrics.scrape_period import RECENT
from servetop.recordings.read.reader import RecordingReader
from tests.harness import wait_for
from tests.integration.harness import Vllm, cache, vllm_server
from tests.integration.real_engines import started
from tests.watched_server import watching

SERVETOP = (sys.executable, "-m", "servetop")
OFTEN = 20.0
"""Readings per second of the client that reads often."""
READINGS = 200
"""Readings of a server without load."""
TOKENS = 64
LONGEST_START = 120.0
_CPU_CLOCK = 2
"""Of a process, in the numbers by which Linux names the clocks of others: nanoseconds, with ended threads."""


@dataclass(frozen=True)
class Cpu:
    """CPU time in seconds: of the process that answers, and of all."""

    answering: float
    whole: float

    def __add__(self, other: Cpu) -> Cpu:
        return Cpu(self.answering + other.answering, self.whole + other.whole)

    def __sub__(self, other: Cpu) -> Cpu:
        return Cpu(self.answering - other.answering, self.whole - other.whole)


@dataclass(frozen=True)
class Server:
    """A server under test."""

    title: str
    url: str
    model: str
    rate: float
    """Requests per second."""

    def cpu(self) -> Cpu:
        """Return the CPU time of its processes so far."""
        process = next(each for each in psutil.Process().children() if _listens(each, urlsplit(self.url).port))
        answering, *others = (
            time.clock_gettime((~each.pid << 3) | _CPU_CLOCK) for each in (process, *process.children(recursive=True))
        )
        return Cpu(answering, answering + sum(others))


def _listens(process: psutil.Process, port: int | None) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(each.laddr.port == port for each in process.net_connections() if each.status == psutil.CONN_LISTEN)
    return False


@contextmanager
def simulator() -> Iterator[Server]:
    """Start servetop's simulator as a server."""
    command = (*SERVETOP, "serve", "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            url = next(word for line in process.stdout for word in line.split() if word.startswith("http://"))
            with urlopen(f"{url}/v1/models", timeout=LONGEST_START) as response:
                model = json.load(response)["data"][0]["id"]
            yield Server("servetop's simulator", url, model, rate=20.0)
        finally:
            process.terminate()
            process.wait(timeout=60)


@contextmanager
def vllm() -> Iterator[Server]:
    """Start vLLM."""
    engine = vllm_server(Vllm((cache() / "vllm").resolve()), "--max-num-seqs", "8")
    with tempfile.TemporaryDirectory() as folder, started(engine, Path(folder) / "log"):
        yield Server("vLLM on the CPU", engine.url, engine.model, rate=8.0)


SERVERS: dict[str, Callable[[], AbstractContextManager[Server]]] = {"simulator": simulator, "vllm": vllm}


def readings(recording: Path) -> list[float]:
    """Return when a watch has read its server, in seconds."""
    with closing(RecordingReader.open(recording)) as reader:
        return [each.scrape_start for each in reader.engine_samples()]


@contextmanager
def watched(server: Server) -> Iterator[Path]:
    """Watch the server, from when it is known how long a page takes; yields the recording."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "watch.servetop"
        command = (*SERVETOP, "watch", server.url, "--headless", "--record", str(recording))
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(lambda: watching(recording), seconds=LONGEST_START, what="the first page of the watch")
                wait_for(lambda: len(readings(recording)) > RECENT, seconds=LONGEST_START, what="the next pages")
                yield recording
            finally:
                process.terminate()
                process.wait(timeout=60)


@contextmanager
def often(server: Server) -> Iterator[None]:
    """Read the metrics page OFTEN times a second over one connection, as a watch does."""
    ended = threading.Event()

    def read() -> None:
        due = time.monotonic()
        with contextlib.closing(http.client.HTTPConnection(urlsplit(server.url).netloc)) as connection:
            while not ended.wait(max(due - time.monotonic(), 0.0)):
                due += 1 / OFTEN
                connection.request("GET", "/metrics")
                connection.getresponse().read()

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield
    finally:
        ended.set()
        reading.join()


def load(server: Server, seconds: float) -> Cpu:
    """Send the same requests at the same times as each time before; return the server's CPU time."""
    before = server.cpu()
    bare = Path(__file__).with_name("bare_client.py")
    options = ("--model", server.model, "--tokens", str(TOKENS), "--rate", str(server.rate), "--seconds", str(seconds))
    port = str(urlsplit(server.url).port)
    subprocess.run((sys.executable, bare, "--port", port, *options), check=True, stdout=subprocess.DEVNULL)
    return server.cpu() - before


@dataclass(frozen=True)
class Round:
    """CPU time of the server under the same load, each the sum of two."""

    alone: Cpu
    watched: Cpu
    often: Cpu
    period: float
    """Seconds from one reading of the watch to the next."""
    seconds: float
    """Seconds of two loads."""

    @classmethod
    def measure(cls, server: Server, seconds: float) -> Round:
        """Run the six loads of a round."""
        first = load(server, seconds)
        beside, period = watched_load(server, seconds)
        start = time.monotonic()
        with often(server):
            read = load(server, seconds) + load(server, seconds)
            took = time.monotonic() - start
        again, later = watched_load(server, seconds)
        last = load(server, seconds)
        return cls(first + last, beside + again, read, period=(period + later) / 2, seconds=took)

    @property
    def reading(self) -> float:
        """CPU time in seconds of one reading under load."""
        return (self.often - self.alone).answering / (OFTEN * self.seconds)

    @property
    def share(self) -> float:
        """Part of the server's CPU time that a watch adds."""
        return self.reading / self.period * self.seconds / self.alone.whole


def watched_load(server: Server, seconds: float) -> tuple[Cpu, float]:
    """Send the load while the server is watched; return its CPU time, and the seconds from reading to reading."""
    with watched(server) as recording:
        before = len(readings(recording))
        used = load(server, seconds)
        return used, statistics.fmean(b - a for a, b in pairwise(readings(recording)[before - 1 :]))


def mean(values: list[float]) -> tuple[float, float]:
    """Return the mean, and two standard errors of it."""
    return statistics.fmean(values), 2 * statistics.stdev(values) / len(values) ** 0.5


def report(server: Server, rounds: list[Round], *, seconds: float, idle: float) -> None:
    """Print the table of one server."""
    requests = 2 * server.rate * seconds
    print(f"{server.title}, {server.rate:g} requests/s of {TOKENS} tokens, {len(rounds)} rounds of 6 × {seconds:g} s")
    for name in ("alone", "watched", "often"):
        each, error = mean([1e3 * getattr(one, name).whole / requests for one in rounds])
        print(f"  {name:8} {each:7.2f} ± {error:.2f} ms of CPU a request")
    ratio, error = mean([100 * (each.watched.whole / each.alone.whole - 1) for each in rounds])
    print(f"  watched / alone           {ratio:+.2f} % ± {error:.2f} %")
    reading, error = mean([1e3 * each.reading for each in rounds])
    print(f"  one reading, under load   {reading:.2f} ± {error:.2f} ms")
    print(f"  one reading, without load {idle:.2f} ms")
    period = statistics.fmean([each.period for each in rounds])
    used = statistics.fmean([each.alone.whole / each.seconds for each in rounds])
    shares = [100 * each.share for each in rounds]
    share, error = mean(shares)
    print(f"  one each {period:.2f} s, of the {used:.0%} of a core under load: {share:.2f} ± {error:.2f} %", end="")
    print(f" (median {statistics.median(shares):.2f} %)", flush=True)


def idle_reading(server: Server) -> float:
    """Return the CPU time in ms of one reading, while nothing else is asked of the server."""
    before = server.cpu()
    for _ in range(READINGS):
        with urlopen(f"{server.url}/metrics", timeout=LONGEST_START) as response:
            response.read()
    return 1e3 * (server.cpu() - before).answering / READINGS


def main() -> None:
    """Measure each server that is here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=tuple(SERVERS), action="append")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: at least 2, for their spread")
    for name in options.server or SERVERS:
        if name == "vllm" and not (cache() / "vllm" / ".ready").exists() and not options.server:
            print("vLLM is not installed (make integration): not measured")
            continue
        with SERVERS[name]() as server:
            load(server, options.seconds)
            idle = idle_reading(server)
            rounds = [Round.measure(server, options.seconds) for _ in range(options.rounds)]
            report(server, rounds, seconds=options.seconds, idle=idle)


if __name__ == "__main__":
    main()
