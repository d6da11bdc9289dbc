"""Sockets read by their own epoll: exact arrival times, deferred writes, polling at intervals."""

from __future__ import annotations

import asyncio
import socket
import statistics
import struct
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.system.own_python import python_argv
from servetop.loadgen.transport import epoll_reader
from servetop.loadgen.transport.epoll_reader import SocketPoller
from servetop.loadgen.transport.kernel_timestamps import KernelTimestamps


class StillClock(MonotonicClock):
    def now(self) -> float:
        return 5.0


class Peer:
    """A server in its own thread; a function serves one connection."""

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
    """Keeps everything it receives."""

    def __init__(self) -> None:
        self.not_before = 0.0
        self.reads: list[tuple[bytes, float]] = []
        self.over = asyncio.Event()

    def data_arrived(self, data: bytes, at: float) -> None:
        self.reads.append((data, at))

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()


def nothing() -> None: ...


busy = threading.Event().wait
"""Blocks the thread for a number of seconds."""


needs_epoll = pytest.mark.skipif(not SocketPoller.available, reason="no epoll on this system")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps what arrives")
async def test_arrival_times_are_exact_although_the_client_is_busy() -> None:
    clock, sent = MonotonicClock(), []

    def play(connection: socket.socket) -> None:
        for number in range(40):
            busy(0.02)
            sent.append(clock.now())
            connection.sendall(b"%d " % number)

    peer, kept, poller = Peer(play), Kept(), SocketPoller(clock, send_overdue=nothing, all_parsed=nothing)
    await poller.connect("127.0.0.1", peer.port, kept)
    while not kept.over.is_set():
        busy(0.012)  # a client that does something else most of the time
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
    peer.join()
    poller.close()
    arrived = {int(word): at for data, at in kept.reads for word in data.split()[-1:]}  # a read has its last one's time
    assert len(arrived) > 20
    assert statistics.median(at - sent[number] for number, at in arrived.items()) < 0.001


def test_an_impossible_timestamp_is_replaced_by_the_current_time() -> None:
    clock = StillClock()
    epoch = clock.origin_epoch_ns()
    clock.origin_epoch_ns = lambda: epoch  # type: ignore[method-assign]

    def stamped(at: float) -> list[tuple[int, int, bytes]]:
        return [(socket.SOL_SOCKET, 35, struct.pack("@ll", *divmod(epoch + round(at * 1e9), 10**9)))]

    stamps = KernelTimestamps(clock)
    run_time = stamps.compare_clocks()
    assert run_time(stamped(4.25), 1.0) == pytest.approx(4.25, abs=1e-8)
    assert run_time(stamped(4.249_999_9), 4.25) == 4.25  # the same segment, another comparison of the clocks
    assert run_time(stamped(3.0), 4.25) == 5.0  # the wall clock was set back meanwhile
    assert run_time(stamped(7200.0), 4.25) == 5.0  # or forward
    assert not stamps.missing
    assert run_time([], 4.25) == 5.0
    assert stamps.missing
    assert run_time([], 4.25) == 5.0


@needs_epoll
async def test_data_that_the_kernel_does_not_accept_at_once_is_sent_later() -> None:
    body, got = bytes(range(256)) * 40_000, bytearray()

    def play(connection: socket.socket) -> None:
        busy(0.1)
        while len(got) < len(body):
            got.extend(connection.recv(1 << 16))

    peer, kept, poller = Peer(play), Kept(), SocketPoller(MonotonicClock(), send_overdue=nothing, all_parsed=nothing)
    plain = await poller.connect("127.0.0.1", peer.port, kept)
    for start in range(0, len(body), 5_000_000):
        plain.write(body[start : start + 5_000_000])
    async with asyncio.timeout(20):
        await kept.over.wait()
    peer.join()
    poller.close()
    assert got == body
    assert plain.is_closing()


@needs_epoll
async def test_closing_a_socket_notifies_its_receiver_once() -> None:
    def play(connection: socket.socket) -> None:
        connection.recv(1)

    peer, kept, poller = Peer(play), Kept(), SocketPoller(MonotonicClock(), send_overdue=nothing, all_parsed=nothing)
    plain = await poller.connect("127.0.0.1", peer.port, kept)
    plain.abort()
    plain.abort()
    plain.write(b"too late")
    async with asyncio.timeout(5):
        await kept.over.wait()
    peer.join()
    poller.close()
    assert kept.reads == []


@needs_epoll
async def test_sockets_are_polled_at_intervals_only_for_many_long_requests() -> None:
    clock = StillClock()
    poller = SocketPoller(clock, send_overdue=nothing, all_parsed=nothing)
    with socket.create_server(("127.0.0.1", 0), backlog=32) as listening:
        plains = [await poller.connect("127.0.0.1", listening.getsockname()[1], Kept()) for _ in range(16)]

        def busy_after_two_wake_ups() -> bool:
            poller._woken_at = clock.now()
            poller._on_readable()
            return poller._timer is not None and not poller._timer.cancelled()

        assert not busy_after_two_wake_ups()  # nothing is known of the requests yet
        poller.note_age(0.05)
        assert not busy_after_two_wake_ups()  # half a millisecond would be too fine
        poller.note_age(3.0)
        assert busy_after_two_wake_ups()
        poller.note_duration(0.02)
        poller._poll()
        assert poller._timer is not None
        assert poller._timer.cancelled()
        poller.note_age(3.0)
        plains.pop().abort()
        assert not busy_after_two_wake_ups()  # 15 sockets are few: one pause
        for plain in plains:
            plain.abort()
    poller.close()


class Pauses:
    """Stands in for the timer of pauses: a test ends them."""

    def __init__(self) -> None:
        self.until: list[float] = []

    def arm(self, at: float) -> None:
        self.until.append(at)

    def close(self) -> None: ...


@needs_epoll
async def test_a_burst_of_wake_ups_is_read_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    got, wanted, pauses = asyncio.Event(), threading.Semaphore(0), Pauses()
    monkeypatch.setattr(epoll_reader, "deadline_timer", lambda _clock, _callback: pauses)

    class Waits(Kept):
        def data_arrived(self, data: bytes, at: float) -> None:
            super().data_arrived(data, at)
            got.set()

    def play(connection: socket.socket) -> None:
        for word in (b"one ", b"two ", b"three"):
            assert wanted.acquire(timeout=20)
            connection.sendall(word)

    async def next_read() -> None:
        got.clear()
        wanted.release()
        await got.wait()

    peer, kept = Peer(play), Waits()
    poller = SocketPoller(StillClock(), send_overdue=nothing, all_parsed=nothing)
    poller.note_age(3.0)
    await poller.connect("127.0.0.1", peer.port, kept)
    async with asyncio.timeout(20):
        await next_read()
        assert pauses.until == []  # one wake-up is no burst
        await next_read()
        assert pauses.until == [StillClock().now() + epoll_reader.PAUSE_SECONDS]
        got.clear()
        wanted.release()
        peer.join()
        await asyncio.sleep(0)
        assert not got.is_set()  # nothing wakes the loop now
        poller._read_once()
        await kept.over.wait()
    poller.close()
    assert b"".join(data for data, _ in kept.reads) == b"one two three"


_CONNECTS = """
import asyncio, os, sys, uvloop
from servetop.core.clock import MonotonicClock
from servetop.core.system.own_python import python_argv
from servetop.loadgen.transport.epoll_reader import SocketPoller

async def threads_after_connecting() -> int:
    poller = SocketPoller(MonotonicClock(), send_overdue=print, all_parsed=print)
    await poller.connect("127.0.0.1", int(sys.argv[1]), None)
    return len(os.listdir("/proc/self/task"))

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    before = len(os.listdir("/proc/self/task"))
    print(runner.run(threads_after_connecting()) - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_connection_is_opened_without_a_thread_that_would_wait_for_a_processor() -> None:
    pytest.importorskip("uvloop")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        argv = python_argv("-c", _CONNECTS, port)
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


def test_a_refused_connection_names_its_errno() -> None:
    async def connect() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
        poller = SocketPoller(MonotonicClock(), send_overdue=nothing, all_parsed=nothing)
        try:
            await poller.connect("127.0.0.1", port, Kept())
        finally:
            poller.close()

    with pytest.raises(ConnectionRefusedError):
        asyncio.run(connect())
