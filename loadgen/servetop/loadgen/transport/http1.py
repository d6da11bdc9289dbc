"""One HTTP/1.1 keep-alive connection: bytes out, stamped bytes in, one exchange at a time."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
from typing import Protocol, Self, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.transport.epoll_reader import PlainSocket

MAX_HEAD_BYTES = 1 << 20
"""Of headers and trailers of one answer: the parser would keep all of a header that never ends."""
_MOST_ASIDE = 32
"""Events; they are settled once a tick at the latest, which is sooner for most streams: each time costs, too."""
_NO_STREAMS = (b"application/json", b"text/html")
"""Content types of what is no event stream; others are tried, because some servers name none, or a wrong one."""


class Reads(Protocol):
    """Where a connection puts what arrives; it comes back to `take_in`."""

    def stamped(self, connection: Http1Connection, data: bytes, at: float) -> None:
        """Bytes that the kernel stamped."""
        ...

    def put_aside(self, connection: Http1Connection) -> None:
        """Enough regular events have been put aside: settle them."""
        ...

    def unstamped(self, connection: Http1Connection, data: bytes) -> None:
        """Bytes that are here now, to be taken in later: stamping all comes before parsing any; none: it is gone."""
        ...


class Bytes(Protocol):
    """What is needed of a socket, or of asyncio's transport over one."""

    def write(self, data: bytes) -> None:
        """Send, now or as soon as there is room."""
        ...

    def abort(self) -> None:
        """Close without a goodbye."""
        ...

    def is_closing(self) -> bool:
        """Nothing can be sent any more."""
        ...


class Http1Connection(asyncio.Protocol):
    """Written to by `send`; fed by a PlainSocket, or as a protocol by the event loop."""

    def __init__(self, reads: Reads) -> None:
        self.exchange: RequestState | None = None
        self.requests = 0
        """Sent on this connection so far."""
        self.heard = False
        """Bytes of the answer in hand have come."""
        self.complete = False
        """The answer in hand is there to its end."""
        self.broken: str | None = None
        """Why nothing on this connection can be understood any more."""
        self.lost: Exception | None = None
        self.earliest = 0.0
        """See Receiver."""
        self._reads = reads
        self.plain: PlainSocket | None = None
        """The socket, where it is read without the event loop's protocols."""
        self._socket: Bytes | None = None
        self._fd = -1
        """Where it is open: what is written to it reaches the server as it is."""
        self._pieces: list[bytes] = []
        self._status = 0
        self._content_type = b""
        self._coding = b""
        self._head_bytes = 0
        self._framed = False
        self._keep_alive = True
        self._between_chunks = False
        """The parser has taken in a whole chunk, and nothing of the next."""
        self._edges: tuple[bytes, bytes] | None = None
        self._starts: dict[int, bytes] = {}
        """What a regular event begins with that comes as a chunk of its own, by the number of bytes read."""
        self._end = b""
        """And ends with."""
        self._cut = 0
        self.on_body = self._pieces.append
        self._parser = HttpResponseParser(self)

    def over(self, plain: PlainSocket) -> Self:
        """Use this socket from now on."""
        self.plain = self._socket = plain
        self._fd = plain.fd
        return self

    def arrived(self, data: bytes, at: float) -> None:
        """See Receiver. Most of what arrives is one regular event: it is put aside for its exchange to settle."""
        start = self._starts.get(len(data))
        if start is None and self._starts:
            start = self._start_of(data)
        exchange = self.exchange
        if start is not None and data.startswith(start) and data.endswith(self._end) and exchange is not None:
            aside = exchange.aside
            aside.append((data[len(start) : self._cut], at))
            if len(aside) == _MOST_ASIDE:
                self._reads.put_aside(self)
        else:
            self._reads.stamped(self, data, at)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._socket = cast("asyncio.Transport", transport)  # uvloop's derives from nothing of asyncio's
        peer = transport.get_extra_info("socket")
        if peer is not None:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._reads.unstamped(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop; see Receiver too."""
        self.lost = exc
        self._fd = -1
        self._reads.unstamped(self, b"")

    @property
    def usable(self) -> bool:
        """Another request can be sent."""
        return self._keep_alive and self._socket is not None and not self._socket.is_closing()

    @property
    def ends_with_connection(self) -> bool:
        """The answer in hand has no length of its own: the connection's end is its end."""
        return self._status != 0 and not self._framed

    def send(self, exchange: RequestState, request: bytes, *, at: float) -> None:
        """Hand the request to the socket, at once where the event loop would wait for its next turn."""
        self.exchange = exchange
        self.requests += 1
        self.heard = self.complete = self._framed = self._between_chunks = False
        self.earliest = at
        self._status, self._content_type, self._coding, self._head_bytes = 0, b"", b"", 0
        exchange.was_sent(at)
        if self.plain is not None:
            self.plain.behind = False
        rest = request
        if self._fd >= 0:
            try:
                rest = request[os.write(self._fd, request) :]
            except BlockingIOError:
                pass
            except OSError:
                self.abort()  # the loop reports the loss, as for a connection that the server closed
                return
        if rest and self._socket is not None:
            self._socket.write(rest)

    def abort(self) -> None:
        """Close without a goodbye."""
        self._fd = -1
        if self._socket is not None:
            self._socket.abort()

    def take_in(self, data: bytes, at: float, *, since: float | None = None) -> None:
        """Parse bytes that arrived at `at`, not before `since`, and pass them to the exchange."""
        exchange = self.exchange
        if exchange is None:
            return
        if self._between_chunks:
            head = _head_of_lone_chunk(len(data))
            if head and data.startswith(head) and data.endswith(b"\r\n"):
                exchange.received(data[len(head) : -2], at, since=since)
                self._expect_another(exchange, head, size=len(data))
                return
        self._edges = None
        self._starts.clear()
        self.heard = True
        try:
            self._parser.feed_data(data)
        except HttpParserCallbackError:
            raise
        except (HttpParserError, HttpParserUpgrade) as error:
            self.broken = f"the server does not speak HTTP/1.1 as it should ({error})"
        if exchange.headers_at is None and self._status:
            is_stream = not self._content_type.startswith(_NO_STREAMS)
            exchange.answered(self._status, at, is_stream=is_stream, coding=self._coding.decode("latin-1"))
        if self._pieces:
            body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            exchange.received(body, at, since=since)
        else:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and self.broken is None:
                self.broken = f"the answer has more than {MAX_HEAD_BYTES >> 20} MiB of headers"

    def _expect_another(self, exchange: RequestState, head: bytes, *, size: int) -> None:
        edges = exchange.edges()
        if edges is not self._edges:
            self._edges = edges
            self._starts.clear()
        if edges is not None:
            self._end = edges[1] + b"\r\n"
            self._cut = -len(self._end)
            if size > len(head) + len(edges[0]) + len(self._end):
                self._starts[size] = head + edges[0]

    def _start_of(self, data: bytes) -> bytes | None:
        """What a regular event begins with that is the first of its length; None where these bytes are none."""
        head = _head_of_lone_chunk(len(data))
        if self._edges is None or not head or len(data) <= len(head) + len(self._edges[0]) + len(self._end):
            return None
        start = head + self._edges[0]
        if not data.startswith(start):
            return None
        self._starts[len(data)] = start
        return start

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        match name.lower():
            case b"content-type":
                self._content_type = value.lower()
            case b"content-encoding":
                self._coding = value
            case b"content-length" | b"transfer-encoding":
                self._framed = True

    def on_headers_complete(self) -> None:
        """Called by the parser; interim answers (1xx) are passed over."""
        status = self._parser.get_status_code()
        if status >= 200:
            self._status = status
            self._keep_alive = self._parser.should_keep_alive()

    def on_chunk_header(self) -> None:
        """Called by the parser."""
        self._between_chunks = False

    def on_chunk_complete(self) -> None:
        """Called by the parser."""
        self._between_chunks = True

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self.complete = self._status != 0
        self._between_chunks = False


@functools.lru_cache(maxsize=4096)
def _head_of_lone_chunk(size: int) -> bytes:
    """What so many bytes begin with when they are one whole chunk as servers write it; empty: they cannot be one."""
    for digits in range(1, 8):
        head = b"%x\r\n" % max(0, size - digits - 4)
        if len(head) == digits + 2 and head[0] != ord("0"):
            return head
    return b""
