"""Where a sender's time goes, and what a request costs in memory: `python bench/steps.py`. Needs gcc.

First the steps of taking in one regular event, each called in a loop with nothing else (µs an event, best of five).
Then processor time per event of real processes, pinned as in bench/duel.py, on 256 paced streams: the C client; the
sender's sockets alone, whose bytes are thrown away; the whole sender. Then bytes that one request in flight keeps.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from client import SOURCE, build, pinned, shapes
from contenders import CPUS, in_c, servetop
from duel import bout, serving

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus
from servetop.core.interfaces.dialect import Prompt
from servetop.core.tick import LoadGauges
from servetop.engines.dialects import dialect_for
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.sender.tick_builder import TickBuilder
from servetop.loadgen.transport.epoll_reader import SocketPoller
from servetop.loadgen.transport.http1 import Http1Connection
from servetop.workload.stage_run import Due

STREAMS, EVENTS = 256, 80
TOGETHER = 5
"""Events of one stream; fewer than are settled without being asked."""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    b'data: {"id":"cmpl-%08x","object":"text_completion","created":1795252819,"model":"tiny-llama","choices":[{"index"'
    b':0,"text":" w%d","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}\n\n'
)
DIALECT = dialect_for("completions", model="tiny-llama", continuous_usage=False)


class Inbox:
    """What the transport does with reads, without its bookkeeping."""

    def __init__(self, accounts: TickBuilder) -> None:
        self._accounts = accounts

    def stamped(self, connection: Http1Connection, data: bytes, at: float) -> None:
        """See Reads."""
        connection.parse(data, at)

    def flush(self, connection: Http1Connection) -> None:
        """See Reads."""
        if connection.request is not None:
            connection.request.flush()
            self._accounts.add_chunks(connection.request)

    def unstamped(self, connection: Http1Connection, data: bytes) -> None:
        """See Reads."""


def chunk(stream: int, number: int) -> bytes:
    """One event as it arrives; another object each time, as from a socket."""
    event = EVENT % (stream, 1000 + number)
    return b"%x\r\n%b\r\n" % (len(event), event)


def begun(stream: int, inbox: Inbox) -> Http1Connection:
    """A connection with an answer that has begun: its shape is known."""
    prompt = Prompt(text="x" * 2000, input_tokens=500, output_tokens=EVENTS)
    prepared = PreparedRequest(prompt, b"{}" * 1000)
    exchange = RequestState(stream, Due(0, float(stream)), prepared=prepared, dialect=DIALECT, limited=False)
    connection = Http1Connection(inbox)
    connection.send(exchange, b"", at=stream + 0.1)
    connection.data_arrived(HEAD, stream + 0.2)
    for number in range(3):
        connection.data_arrived(chunk(stream, number), stream + 0.3)
    return connection


class Stopwatch:
    """Adds up what each step takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, step: str, work: Callable[[], object]) -> None:
        """Do it, and count its time."""
        began = time.perf_counter()
        work()
        self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - began


def by_hand() -> Sequence[tuple[str, float]]:
    """The steps of taking in, µs an event, each in its best of five rounds."""
    rounds = [one_round() for _ in range(5)]
    return [(step, min(each[step] for each in rounds) / (STREAMS * EVENTS) * 1e6) for step in rounds[0]]


def one_round() -> dict[str, float]:
    """Seconds of each step for EVENTS events of each of STREAMS streams."""
    accounts, watch = TickBuilder(), Stopwatch()
    connections = [begun(stream, Inbox(accounts)) for stream in range(STREAMS)]
    exchanges = [each.request for each in connections if each.request is not None]

    def flush(reads: Sequence[tuple[Http1Connection, bytes]]) -> None:
        for connection, data in reads:
            connection.data_arrived(data, 9e5)

    for first in range(0, EVENTS, TOGETHER):
        reads = [(each, chunk(stream, first + k)) for k in range(TOGETHER) for stream, each in enumerate(connections)]
        watch("recognised and put aside", partial(flush, reads))
        watch("verified and logged", lambda: [each.flush() for each in exchanges])
        watch("counted", lambda: [accounts.add_chunks(each) for each in exchanges])
    watch("a tick's histograms", lambda: accounts.build(0, gauges=LoadGauges(), cpu_seconds=0.0))
    return watch.seconds


class Discarded:
    """Receives, and counts what looks like an event."""

    not_before = 0.0
    events = 0

    def data_arrived(self, data: bytes, at: float) -> None:  # noqa: ARG002
        """See Receiver."""
        self.events += data.count(b"data: {")

    def connection_lost(self, exc: Exception | None) -> None:
        """See Receiver."""


async def sockets_alone(port: int, tokens: int) -> float:
    """µs an event of reading the streams and throwing them away."""
    watch, receiver = SocketPoller(MonotonicClock(), send_overdue=lambda: None), Discarded()
    body = b'{"model":"m","prompt":"hi","max_tokens":%d,"stream":true,"ignore_eos":true}' % tokens
    head = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
    plains = [await watch.connect("127.0.0.1", port, receiver) for _ in range(STREAMS)]
    began = time.process_time()
    for plain in plains:
        plain.write(head + body)
    while receiver.events < STREAMS * tokens * 0.98:
        await asyncio.sleep(0.2)
    used = time.process_time() - began
    watch.close()
    return used / receiver.events * 1e6


def in_processes(runs: int = 5) -> Sequence[tuple[str, float]]:
    """Medians over runs in turn."""
    shape = replace(shapes(6.0)["paced256"], stage=StageConfig(max_concurrency=256, num_prompts=256))
    found: dict[str, list[float]] = {"the C client": [], "the sender's sockets alone": [], "the whole sender": []}
    with tempfile.TemporaryDirectory() as folder:
        program, ccli = build(Path(folder)), Path(folder) / "ccli"
        subprocess.run(["gcc", "-O2", "-w", "-o", ccli, SOURCE / "ccli.c", "-lm"], check=True)
        for _ in range(runs):
            found["the C client"].append(bout(program, in_c(ccli), shape, "paced256").cpu_us)
            with serving(program, shape, Path(folder) / "log.csv") as port:
                words = [sys.executable, __file__, "--sockets", str(port), str(shape.tokens)]
                done = subprocess.run(pinned(CPUS[1], words), capture_output=True, text=True, check=True)
                found["the sender's sockets alone"].append(float(done.stdout))
            found["the whole sender"].append(bout(program, servetop, shape, "paced256").cpu_us)
    return [(name, statistics.median(values)) for name, values in found.items()]


def memory(events: int, requests: int = 2000) -> float:
    """Bytes that a request in flight keeps after so many events, without its connection."""
    accounts = TickBuilder()
    inbox = Inbox(accounts)
    begun(0, inbox)
    gc.collect()
    tracemalloc.start()
    kept: list[RequestState | None] = []
    for stream in range(requests):
        connection = begun(stream, inbox)
        for number in range(events - 3):
            connection.data_arrived(chunk(stream, number), stream + 0.4 + number * 0.01)
        if connection.request is not None:
            connection.request.flush()
        kept.append(connection.request)
    del connection
    accounts.build(0, gauges=LoadGauges(), cpu_seconds=0.0)  # as at the end of every tick
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / requests
    tracemalloc.stop()
    assert all(each is not None and each.status is not RequestStatus.ERROR for each in kept)
    return held


def main() -> None:
    """Print the three tables; with `--sockets PORT TOKENS`, only that figure."""
    if sys.argv[1:2] == ["--sockets"]:
        print(asyncio.run(sockets_alone(int(sys.argv[2]), int(sys.argv[3]))))
        return
    for name, cost in by_hand():
        print(f"{name:<34}{cost:8.2f} µs an event, in a loop of nothing else")
    for name, cost in in_processes():
        print(f"{name:<34}{cost:8.2f} µs an event, 256 paced streams")
    few, many = memory(10), memory(410)
    print(f"{'a request in flight keeps':<34}{few - (many - few) / 40:8.0f} B, and {(many - few) / 400:.1f} B a chunk")


if __name__ == "__main__":
    main()
