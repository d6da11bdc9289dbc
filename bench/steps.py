"""Measures where a sender spends its time, and a request's memory: `python bench/steps.py`. Needs gcc.

First the steps of reading one regular event, each in a separate loop (µs per event, best of five). Then CPU time per
event of real processes, pinned as in bench/duel.py, on 256 paced streams: the C client, the sender's sockets with the
data discarded, the whole sender. Then the bytes that one request in flight uses.
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
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.sender.tick_builder import TickBuilder
from servetop.loadgen.transport.epoll_reader import SocketPoller
from servetop.loadgen.transport.http1 import Http1Connection
from servetop.workload.stages.stage_run import Due

STREAMS, EVENTS = 256, 80
TOGETHER = 5
"""Events of one stream; fewer than http1's limit, so that none are flushed early."""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    b'data: {"id":"cmpl-%08x","object":"text_completion","created":1795252819,"model":"tiny-llama","choices":[{"index"'
    b':0,"text":" w%d","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}\n\n'
)
DIALECT = dialect_for("completions", model="tiny-llama", continuous_usage=False)


class Inbox:
    """Handles reads like the transport, without its bookkeeping."""

    def __init__(self, builder: TickBuilder) -> None:
        self._builder = builder

    def stamped(self, connection: Http1Connection, data: bytes, at: float) -> None:
        connection.parse(data, at)

    def flush(self, connection: Http1Connection) -> None:
        if connection.request is not None:
            connection.request.flush()
            self._builder.add_chunks(connection.request)

    def unstamped(self, connection: Http1Connection, data: bytes) -> None: ...


def chunk(stream: int, number: int) -> bytes:
    """Return one event as it arrives; a new object each time, as from a socket."""
    event = EVENT % (stream, 1000 + number)
    return b"%x\r\n%b\r\n" % (len(event), event)


def started(stream: int, inbox: Inbox) -> Http1Connection:
    """Return a connection whose response has started, so that its regular events are recognised."""
    prompt = Prompt(text="x" * 2000, input_tokens=500, output_tokens=EVENTS)
    prepared = PreparedRequest(prompt, b"{}" * 1000)
    request = RequestState(stream, Due(0, float(stream)), prepared=prepared, dialect=DIALECT, limited=False)
    connection = Http1Connection(inbox)
    connection.send(request, b"", at=stream + 0.1)
    connection.data_arrived(HEAD, stream + 0.2)
    for number in range(3):
        connection.data_arrived(chunk(stream, number), stream + 0.3)
    return connection


class Stopwatch:
    """Adds up the time of each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, step: str, work: Callable[[], object]) -> None:
        """Run the work and add its time."""
        began = time.perf_counter()
        work()
        self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - began


def in_a_loop() -> Sequence[tuple[str, float]]:
    """Return the steps of reading, in µs per event, each from the best of five rounds."""
    rounds = [one_round() for _ in range(5)]
    return [(step, min(each[step] for each in rounds) / (STREAMS * EVENTS) * 1e6) for step in rounds[0]]


def one_round() -> dict[str, float]:
    """Return the seconds of each step for EVENTS events of each of STREAMS streams."""
    builder, watch = TickBuilder(), Stopwatch()
    connections = [started(stream, Inbox(builder)) for stream in range(STREAMS)]
    requests_in_flight = [each.request for each in connections if each.request is not None]

    def defer(reads: Sequence[tuple[Http1Connection, bytes]]) -> None:
        for connection, data in reads:
            connection.data_arrived(data, 9e5)

    for first in range(0, EVENTS, TOGETHER):
        reads = [(each, chunk(stream, first + k)) for k in range(TOGETHER) for stream, each in enumerate(connections)]
        watch("recognised and deferred", partial(defer, reads))
        watch("verified and logged", lambda: [each.flush() for each in requests_in_flight])
        watch("counted", lambda: [builder.add_chunks(each) for each in requests_in_flight])
    watch("a tick's histograms", lambda: builder.build(0, gauges=LoadGauges(), cpu_seconds=0.0))
    return watch.seconds


class Discarded:
    """Discards what it receives and counts what looks like an event."""

    not_before = 0.0
    events = 0

    def data_arrived(self, data: bytes, at: float) -> None:  # noqa: ARG002
        self.events += data.count(b"data: {")

    def connection_lost(self, exc: Exception | None) -> None: ...


async def sockets_alone(port: int, tokens: int) -> float:
    """Return the µs per event of reading the streams and discarding the data."""
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
    """Return medians over alternating runs."""
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
    """Return the bytes that a request in flight uses after a number of events, without its connection."""
    builder = TickBuilder()
    inbox = Inbox(builder)
    started(0, inbox)
    gc.collect()
    tracemalloc.start()
    kept: list[RequestState | None] = []
    for stream in range(requests):
        connection = started(stream, inbox)
        for number in range(events - 3):
            connection.data_arrived(chunk(stream, number), stream + 0.4 + number * 0.01)
        if connection.request is not None:
            connection.request.flush()
        kept.append(connection.request)
    del connection
    builder.build(0, gauges=LoadGauges(), cpu_seconds=0.0)  # as at the end of every tick
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / requests
    tracemalloc.stop()
    assert all(each is not None and each.status is not RequestStatus.ERROR for each in kept)
    return held


def main() -> None:
    """Print the three tables; with `--sockets PORT TOKENS`, only that value."""
    if sys.argv[1:2] == ["--sockets"]:
        print(asyncio.run(sockets_alone(int(sys.argv[2]), int(sys.argv[3]))))
        return
    for name, cost in in_a_loop():
        print(f"{name:<34}{cost:8.2f} µs an event, in a loop of nothing else")
    for name, cost in in_processes():
        print(f"{name:<34}{cost:8.2f} µs an event, 256 paced streams")
    few, many = memory(10), memory(410)
    print(f"{'a request in flight keeps':<34}{few - (many - few) / 40:8.0f} B, and {(many - few) / 400:.1f} B a chunk")


if __name__ == "__main__":
    main()
