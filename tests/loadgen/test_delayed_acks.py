"""Acknowledgements are delayed only for a server that does not wait for them."""

from __future__ import annotations

import asyncio
import socket
import sys

import pytest

from servetop.core.clock import MonotonicClock
from servetop.loadgen.transport.delayed_acks import TRIALS, DelayedAcks
from servetop.loadgen.transport.epoll_reader import SocketPoller

MS = 0.001


class Stream:
    """A stream with an event every 10 ms; `waits`: the server stalls while an acknowledgement is outstanding."""

    def __init__(self, *, itl: float = 10 * MS, waits: bool = False) -> None:
        self.now = 1.0
        self.delays = 0
        self.longest_gap = 0.0
        self._itl = itl
        self._waits = waits
        self._stalls = False

    def delay_acks(self) -> None:
        self.delays += 1
        self._stalls = self._waits

    def events(self, count: int) -> list[tuple[bytes, float]]:
        """Return the next events; if the server waits, the second one is delayed by the kernel's 40 ms."""
        found = []
        for number in range(count):
            gap = 40 * MS if self._stalls and number == 1 else self._itl
            self.longest_gap = max(self.longest_gap, gap)
            self.now += gap
            found.append((b"", self.now))
        self._stalls = self._stalls and count < 2
        return found


def test_after_one_trial_a_server_that_does_not_wait_gets_half_of_the_acknowledgements() -> None:
    acks, first, second = DelayedAcks(), Stream(), Stream()
    acks.observe(first, first.events(12))
    acks.observe(second, second.events(12))
    assert (first.delays, second.delays) == (1, 0)
    acks.observe(first, first.events(12))
    acks.observe(second, second.events(12))
    assert (first.delays, second.delays) == (2, 1)


def test_a_server_that_waits_is_tried_three_times() -> None:
    acks, streams = DelayedAcks(), [Stream(waits=True) for _ in range(8)]
    for _ in range(20):
        for stream in streams:
            acks.observe(stream, stream.events(12))
    assert sum(stream.delays for stream in streams) == TRIALS


def test_events_that_were_parsed_elsewhere_during_a_trial_count_as_a_stall() -> None:
    acks, stream = DelayedAcks(), Stream()
    acks.observe(stream, stream.events(12))
    stream.now += 45 * MS  # four events that came as one segment are not passed here
    acks.observe(stream, stream.events(12))
    acks.observe(other := Stream(), other.events(12))
    assert other.delays == 0


def test_a_slow_stream_keeps_its_acknowledgements() -> None:
    acks, stream = DelayedAcks(), Stream(itl=30 * MS)
    for _ in range(10):
        acks.observe(stream, stream.events(8))
    assert stream.delays == 0


def test_a_trial_whose_stream_has_ended_makes_room_for_another() -> None:
    acks, first, second = DelayedAcks(), Stream(), Stream()
    acks.observe(first, first.events(12))
    second.now = first.now + 2.0
    acks.observe(second, second.events(12))
    acks.observe(second, second.events(12))
    assert second.delays == 2


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_QUICKACK is Linux's")
async def test_a_socket_leaves_quickack_mode() -> None:
    class SilentHandler:
        not_before = 0.0

        def data_arrived(self, data: bytes, at: float) -> None: ...

        def connection_lost(self, exc: Exception | None) -> None: ...

    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    poller = SocketPoller(MonotonicClock(), send_overdue=lambda: None, all_parsed=lambda: None)
    plain = await poller.connect("127.0.0.1", server.sockets[0].getsockname()[1], SilentHandler())
    with socket.socket(fileno=socket.dup(plain.fd)) as same:
        assert same.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1
        plain.delay_acks()
        assert same.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 0
    plain.abort()
    plain.delay_acks()  # closed: nothing to do
    poller.close()
    server.close()
