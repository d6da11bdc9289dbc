"""What arrives is taken in by the quickest way that fits it, and means what the slowest way would have made of it."""

from __future__ import annotations

import asyncio
import socket
import statistics
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from httptools import HttpResponseParser
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.clock import MonotonicClock
from servetop.core.wire import Dialect, Prompt
from servetop.engines.dialects import dialect_for
from servetop.engines.dialects.reading import read_completion
from servetop.engines.dialects.stream import EventStream
from servetop.loadgen.exchange import Exchange, PreparedRequest
from servetop.loadgen.http1 import Http1Connection
from servetop.loadgen.kernel_stamps import KernelStamps
from servetop.loadgen.plain_sockets import SocketWatch
from servetop.loadgen.stage_play import Due
from tests.loadgen.conftest import SSE_HEAD

DIALECT = dialect_for("completions", model="m", continuous_usage=False)
TEXTS = st.sampled_from([" a", " word", "", "\n", '"', "\\", "é", '", "x": "', "\\u12", " \t", "a" * 300])
USAGE = {"prompt_tokens": 3, "completion_tokens": 7}


def event(text: str, **more: object) -> bytes:
    content = {"id": "cmpl-1", "choices": [{"index": 0, "text": text, "finish_reason": None}], **more}
    return b"data: " + orjson.dumps(content) + b"\n\n"


regular = TEXTS.map(event)


def counted(number: int, text: str, *, rise: int = 1) -> bytes:
    """An event of a server that counts in each."""
    total = 5 + number * rise
    usage = {"prompt_tokens": 5, "total_tokens": 5 + total, "completion_tokens": total}
    content = {"id": "cmpl-1", "choices": [{"index": 0, "text": text, "finish_reason": None}], "usage": usage}
    return b"data: " + orjson.dumps(content) + b"\n\n"


@st.composite
def counted_payloads(draw: st.DrawFn) -> list[bytes]:
    """Mostly one token an event; sometimes several, none, or an event without a count."""
    found, count = [], 0
    for text in draw(st.lists(TEXTS | st.just(" a"), max_size=60)):
        count += draw(st.sampled_from([1, 1, 1, 1, 1, 1, 2, 0, 7]))
        usual = draw(st.sampled_from([True, True, True, True, True, False]))
        found.append(counted(count, text) if usual else draw(others))
    return found


others = st.sampled_from(
    [
        event("", usage=USAGE),
        event(" two") + event(" of them"),
        b": a comment\n\n",
        b'data: {"error": {"message": "it broke"}}\n\n',
        b"data: {broken\n\n",
        b'data: {"id": "cmpl-1", "choices": [{"index": 0, "text": "\\',
        b"data: [DONE]\n\n",
    ]
)
payloads = st.lists(st.one_of(regular, regular, regular, regular, others), max_size=60)


class StillClock(MonotonicClock):
    def now(self) -> float:
        return 5.0


class Inbox:
    """What the transport does with the reads, and no more."""

    def stamped(self, connection: Http1Connection, data: bytes, at: float) -> None:
        connection.take_in(data, at)

    def put_aside(self, connection: Http1Connection) -> None:
        assert connection.exchange is not None
        connection.exchange.settle()

    def unstamped(self, connection: Http1Connection, data: bytes) -> None: ...


class Body:
    """The body's bytes of each read, by the HTTP parser alone."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append
        self._parser = HttpResponseParser(self)

    def of(self, read: bytes) -> bytes:
        self._pieces.clear()
        self._parser.feed_data(read)
        return b"".join(self._pieces)


def exchange(dialect: Dialect = DIALECT) -> Exchange:
    prompt = Prompt(text="x", input_tokens=1, output_tokens=9)
    return Exchange(0, Due(0, 0.0), request=PreparedRequest(prompt, b"{}"), dialect=dialect, held_back=False)


def seen(made: Exchange) -> list[Any]:
    times, counts = made.chunks.times().tolist(), made.chunks.counts().tolist()
    told = [made.output_tokens, made.prompt_tokens, made.cached_tokens]
    return [times, counts, made.status, made.error, made.first_token_at, made.answer_tokens, *told]


@pytest.mark.parametrize("continuous", [False, True])
@given(payloads=payloads | counted_payloads(), joints=st.data())
def test_every_way_of_taking_in_gives_what_the_exact_one_gives(
    continuous: bool, payloads: list[bytes], joints: st.DataObject
) -> None:
    reads = [SSE_HEAD]
    for payload in payloads:
        chunk = b"%x\r\n%b\r\n" % (len(payload), payload)
        match joints.draw(st.sampled_from(["alone", "alone", "alone", "joined", "cut"])):
            case "joined" if len(reads) > 1:
                reads[-1] += chunk
            case "cut":
                cut = joints.draw(st.integers(1, len(chunk) - 1))
                reads += [chunk[:cut], chunk[cut:]]
            case _:
                reads.append(chunk)
    dialect = dialect_for("completions", model="m", continuous_usage=continuous)
    quick, exact = exchange(dialect), exchange(dialect)
    exact.parser = EventStream(read_completion, None, continuous=continuous, keep_texts=False)
    connection = Http1Connection(Inbox())
    connection.send(quick, b"", at=0.0)
    exact.answered(200, 0.01, is_stream=True)
    framing = Body()
    for number, read in enumerate(reads, 1):
        connection.arrived(read, number / 100)
        if body := framing.of(read):
            exact.received(body, number / 100)
    quick.broke("over", 99.0)
    exact.broke("over", 99.0)
    assert seen(quick) == seen(exact)


def test_regular_events_are_put_aside_and_counted_together() -> None:
    made, connection = exchange(), Http1Connection(Inbox())
    connection.send(made, b"", at=0.0)
    connection.arrived(SSE_HEAD, 0.01)
    for number in range(13):
        payload = event(f" {number}")
        connection.arrived(b"%x\r\n%b\r\n" % (len(payload), payload), 1.0 + number)
    assert len(made.aside) > 0
    made.settle()
    assert made.chunks.times().tolist() == [1.0 + number for number in range(13)]
    assert made.chunks.tokens == 13


def test_regular_events_with_counts_are_put_aside_too() -> None:
    made, connection = exchange(dialect_for("completions", model="m", continuous_usage=True)), Http1Connection(Inbox())
    connection.send(made, b"", at=0.0)
    connection.arrived(SSE_HEAD, 0.01)
    aside = 0
    for number in range(1, 121):
        payload = counted(number, " a" * (number % 5 + 1))
        connection.arrived(b"%x\r\n%b\r\n" % (len(payload), payload), 1.0 + number)
        aside += len(made.aside) > 0
    made.settle()
    assert aside > 100
    assert made.chunks.times().tolist() == [1.0 + number for number in range(1, 121)]
    assert (made.chunks.tokens, made.output_tokens, made.prompt_tokens) == (125, 125, 5)


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (None, [1.0, 1.04, 1.04, 1.04, 1.04]),  # nobody knows when it can have come
        (0.9, [1.0, 1.01, 1.02, 1.03, 1.04]),  # the client was held up: they came one after the other
        (1.025, [1.0, 1.025, 1.025, 1.03, 1.04]),
        (1.039, [1.0, 1.039, 1.039, 1.039, 1.04]),  # it had just looked: they came as one
    ],
)
def test_events_read_together_are_spread_as_far_as_the_look_before_allows(
    since: float | None, expected: list[float]
) -> None:
    made = exchange()
    made.answered(200, 0.9, is_stream=True)
    made.received(event(" a"), 1.0)
    made.received(event(" b") + event(" c") + event(" d") + event(" e"), 1.04, since=since)
    made.received(event(" f") + b"data: [DONE]\n\n", 1.05, since=1.04)
    assert made.chunks.times().tolist() == pytest.approx([*expected, 1.05])
    assert made.done_at == 1.05
    doubts = made.chunks.take_doubts()
    assert (None if doubts is None else doubts.tolist()) == (
        None if since is None else pytest.approx([1.04 - max(since, 1.0)] * 4)
    )
    assert made.chunks.take_doubts() is None


class Peer:
    """A server in a thread of its own: one connection, played by a function."""

    def __init__(self, play: Callable[[socket.socket], None]) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._run, args=(play,), daemon=True)
        self._thread.start()

    def _run(self, play: Callable[[socket.socket], None]) -> None:
        with self._listening, self._listening.accept()[0] as connection:
            play(connection)

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()


class Kept:
    """Receives, and keeps all of it."""

    def __init__(self) -> None:
        self.earliest = 0.0
        self.reads: list[tuple[bytes, float]] = []
        self.over = asyncio.Event()

    def arrived(self, data: bytes, at: float) -> None:
        self.reads.append((data, at))

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()


def nothing() -> None: ...


busy = threading.Event().wait
"""Blocks the thread for so many seconds."""


needs_epoll = pytest.mark.skipif(not SocketWatch.available, reason="no epoll on this system")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps what arrives")
async def test_times_are_true_although_the_client_was_too_busy_to_look() -> None:
    clock, sent = MonotonicClock(), []

    def play(connection: socket.socket) -> None:
        for number in range(40):
            busy(0.02)
            sent.append(clock.now())
            connection.sendall(b"%d " % number)

    peer, kept, watch = Peer(play), Kept(), SocketWatch(clock, send_overdue=nothing)
    await watch.connect("127.0.0.1", peer.port, kept)
    while not kept.over.is_set():
        busy(0.012)  # a client that does something else most of the time
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
    peer.join()
    watch.close()
    arrived = {int(word): at for data, at in kept.reads for word in data.split()[-1:]}  # a read has its last one's time
    assert len(arrived) > 20
    assert statistics.median(at - sent[number] for number, at in arrived.items()) < 0.001


def test_a_stamp_that_cannot_be_true_is_not_believed() -> None:
    clock = StillClock()
    epoch = clock.origin_epoch_ns()
    clock.origin_epoch_ns = lambda: epoch  # type: ignore[method-assign]

    def stamped(at: float) -> list[tuple[int, int, bytes]]:
        return [(socket.SOL_SOCKET, 35, struct.pack("@ll", *divmod(epoch + round(at * 1e9), 10**9)))]

    run_time = KernelStamps(clock).compare_clocks()
    assert run_time(stamped(4.25), 1.0) == pytest.approx(4.25, abs=1e-8)
    assert run_time(stamped(4.249_999_9), 4.25) == 4.25  # the same segment, another comparison of the clocks
    assert run_time(stamped(3.0), 4.25) == 5.0  # the wall clock was set back meanwhile
    assert run_time(stamped(7200.0), 4.25) == 5.0  # or forward
    assert run_time([], 4.25) == 5.0


@needs_epoll
async def test_what_the_kernel_does_not_take_at_once_is_written_as_it_makes_room() -> None:
    body, got = bytes(range(256)) * 40_000, bytearray()

    def play(connection: socket.socket) -> None:
        busy(0.1)
        while len(got) < len(body):
            got.extend(connection.recv(1 << 16))

    peer, kept, watch = Peer(play), Kept(), SocketWatch(MonotonicClock(), send_overdue=nothing)
    plain = await watch.connect("127.0.0.1", peer.port, kept)
    for start in range(0, len(body), 5_000_000):
        plain.write(body[start : start + 5_000_000])
    async with asyncio.timeout(20):
        await kept.over.wait()
    peer.join()
    watch.close()
    assert got == body
    assert plain.is_closing()


@needs_epoll
async def test_a_socket_that_is_closed_here_is_told_to_its_receiver_once() -> None:
    def play(connection: socket.socket) -> None:
        connection.recv(1)

    peer, kept, watch = Peer(play), Kept(), SocketWatch(MonotonicClock(), send_overdue=nothing)
    plain = await watch.connect("127.0.0.1", peer.port, kept)
    plain.abort()
    plain.abort()
    plain.write(b"too late")
    async with asyncio.timeout(5):
        await kept.over.wait()
    peer.join()
    watch.close()
    assert kept.reads == []


@needs_epoll
async def test_sockets_are_looked_at_together_only_while_requests_take_long_and_are_many() -> None:
    clock = StillClock()
    watch = SocketWatch(clock, send_overdue=nothing)
    with socket.create_server(("127.0.0.1", 0), backlog=32) as listening:
        plains = [await watch.connect("127.0.0.1", listening.getsockname()[1], Kept()) for _ in range(16)]

        def busy_after_two_wake_ups() -> bool:
            watch._woken_at = clock.now()
            watch._woken()
            return watch._timer is not None and not watch._timer.cancelled()

        assert not busy_after_two_wake_ups()  # nothing is known of the requests yet
        watch.takes_longer(0.05)
        assert not busy_after_two_wake_ups()  # half a millisecond would be too fine
        watch.takes_longer(3.0)
        assert busy_after_two_wake_ups()
        watch.took(0.02)
        watch._look()
        assert watch._timer is not None
        assert watch._timer.cancelled()
        watch.takes_longer(3.0)
        plains.pop().abort()
        assert not busy_after_two_wake_ups()  # 15 sockets are few
        for plain in plains:
            plain.abort()
    watch.close()
