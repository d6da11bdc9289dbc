"""The least that a load client can do, with sockets and the kernel's timestamps: the floor of bench/beside.py.

    python bench/bare_client.py --port 8100 --model MODEL (--rate 4 | --streams 8) --seconds 20 [--real-time]

It sends bodies that are made before the load, and looks for nothing in a response but the first event and the end. So
its excess over the engine's TTFT is what the server's HTTP and the kernel add, and its slip is what waiting for a
processor adds. Prints one JSON object, in ms.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import socket
import statistics
import struct
import time
from collections import deque
from dataclasses import dataclass, field

from servetop.core.system.scheduling import enter_real_time

_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")
_READ_BYTES = 1 << 16
_ANCILLARY_BYTES = socket.CMSG_SPACE(_TIMESPEC.size)
_FIRST_EVENT, _END = b"\r\ndata: ", b"\r\n0\r\n\r\n"
EVEN = 100.0
"""Burstiness of the open loop, as in beside.py."""
_VOCABULARY = range(10, 90)
_DRAIN_SECONDS = 30.0


@dataclass
class Stream:
    """A kept connection and the request on it."""

    sock: socket.socket
    sent: float = 0.0
    first: float = 0.0
    tail: bytes = b""


@dataclass
class Found:
    """What was measured, in seconds."""

    ttft: list[float] = field(default_factory=list)
    slip: list[float] = field(default_factory=list)
    ended: int = 0


class BareClient:
    """Sends prepared requests over kept connections; all times are of the wall clock, as the kernel's timestamps."""

    def __init__(self, port: int, bodies: list[bytes]) -> None:
        self.found = Found()
        self._port = port
        self._bodies = bodies
        self._epoll = select.epoll()
        self._streams: dict[int, Stream] = {}
        self._idle: list[Stream] = []

    def open(self, connections: int) -> None:
        """Open connections before the load."""
        for _ in range(connections):
            sock = socket.create_connection(("127.0.0.1", self._port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            stream = Stream(sock)
            self._streams[sock.fileno()] = stream
            self._epoll.register(sock, select.EPOLLIN)
            self._idle.append(stream)

    def open_loop(self, rate: float, seconds: float, seed: int) -> None:
        """Send arrivals at almost even intervals, as beside.py asks the other clients to."""
        draw, now = random.Random(seed), time.time()
        due, arrivals = now, deque[float]()
        while (due := due + draw.gammavariate(EVEN, 1.0 / (EVEN * rate))) < now + seconds:
            arrivals.append(due)
        until = now + seconds + _DRAIN_SECONDS
        while (arrivals or len(self._idle) < len(self._streams)) and time.time() < until:
            ahead = arrivals[0] - time.time() if arrivals else 1.0
            if ahead <= 0.0:
                self._send(self._idle.pop(), arrivals.popleft())
                continue
            self._idle += [stream for stream, _ in self._read(ahead)]

    def closed_loop(self, streams: int, seconds: float) -> None:
        """Send the next request on a connection when the last one has ended."""
        now = time.time()
        for _ in range(streams):
            self._send(self._idle.pop(), time.time())
        while (left := now + seconds - time.time()) > 0.0:
            for stream, ended in self._read(left):
                self._send(stream, ended)

    def _send(self, stream: Stream, due: float) -> None:
        stream.sent, stream.first, stream.tail = time.time(), 0.0, b""
        self.found.slip.append(stream.sent - due)
        stream.sock.send(self._bodies[len(self.found.slip) % len(self._bodies)])

    def _read(self, timeout: float) -> list[tuple[Stream, float]]:
        """Read what is there; return the streams that ended, with their times."""
        ended = []
        select.select([self._epoll], [], [], timeout)  # to the microsecond; epoll waits for whole milliseconds
        for fd, _ in self._epoll.poll(0):
            stream = self._streams[fd]
            data, ancillary, _, _ = stream.sock.recvmsg(_READ_BYTES, _ANCILLARY_BYTES)
            if not data:  # the server closes what was idle for long
                self._idle.remove(stream)
                del self._streams[fd]
                stream.sock.close()
                self.open(1)
                continue
            seconds, nanoseconds = _TIMESPEC.unpack(ancillary[0][2])
            at = seconds + nanoseconds * 1e-9
            stream.tail = stream.tail[-len(_END) :] + data
            if not stream.first and _FIRST_EVENT in stream.tail:
                stream.first = at
                self.found.ttft.append(at - stream.sent)
            if stream.tail.endswith(_END):
                self.found.ended += 1
                ended.append((stream, at))
        return ended


def body(model: str, tokens: int, spread: float, draw: random.Random) -> bytes:
    """Return a whole request, as servetop sends it."""
    least, most = round(tokens * (1.0 - spread)), round(tokens * (1.0 + spread))
    prompt = [draw.choice(_VOCABULARY) for _ in range(draw.randint(least, most))]
    usage = {"include_usage": True, "continuous_usage_stats": True}
    fields = {"model": model, "prompt": prompt, "stream": True, "stream_options": usage, "ignore_eos": True}
    content = json.dumps(fields | {"max_tokens": draw.randint(least, most)}).encode()
    head = "POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return head.encode() + f"content-length: {len(content)}\r\n\r\n".encode() + content


def main() -> None:
    """Run the load and print the means and percentiles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real-time", action="store_true")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    client = BareClient(options.port, [body(options.model, options.tokens, options.spread, draw) for _ in range(500)])
    client.open(options.streams if not options.rate else 64)
    if options.real_time:
        enter_real_time()
    begun = time.time()
    if options.rate:
        client.open_loop(options.rate, options.seconds, options.seed)
    else:
        client.closed_loop(options.streams, options.seconds)
    found = client.found

    def p99(values: list[float]) -> float:
        return 1e3 * sorted(values)[int(0.99 * (len(values) - 1))]

    result = {"client": 1e3 * statistics.fmean(found.ttft), "p99": p99(found.ttft), "slip": p99(found.slip)}
    print(json.dumps(result | {"rate": found.ended / (time.time() - begun)}))


if __name__ == "__main__":
    main()
