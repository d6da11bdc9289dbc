"""One HTTP/1.1 keep-alive connection: bytes out, stamped bytes in, one exchange at a time."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Protocol, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from servetop.loadgen.exchange import Exchange

MAX_HEAD_BYTES = 1 << 20
"""Of headers and trailers of one answer: the parser would keep all of a header that never ends."""
_NO_STREAMS = (b"application/json", b"text/html")
"""Content types of what is no event stream; others are tried, because some servers name none, or a wrong one."""


class ReadQueue(Protocol):
    """Where a connection puts what arrives, to be taken in later: stamping all comes before parsing any."""

    def arrived(self, connection: Http1Connection, data: bytes) -> None:
        """Bytes came; none at all means that the connection is gone."""
        ...


class Http1Connection(asyncio.Protocol):
    """Written to by `send`; what arrives goes through the queue and comes back to `take_in`."""

    def __init__(self, queue: ReadQueue, *, plain: bool) -> None:
        self.exchange: Exchange | None = None
        self.requests = 0
        """Sent on this connection so far."""
        self.heard = False
        """Bytes of the answer in hand have come."""
        self.complete = False
        """The answer in hand is there to its end."""
        self.broken: str | None = None
        """Why nothing on this connection can be understood any more."""
        self.lost: Exception | None = None
        self._queue = queue
        self._plain = plain
        """Without TLS: what is written to the socket itself reaches the server as it is."""
        self._transport: asyncio.Transport | None = None
        self._fd = -1
        self._pieces: list[bytes] = []
        self._status = 0
        self._content_type = b""
        self._head_bytes = 0
        self._framed = False
        self._keep_alive = True
        self.on_body = self._pieces.append
        self._parser = HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's derives from nothing of asyncio's
        peer = transport.get_extra_info("socket")
        if peer is not None:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._plain:
                self._fd = peer.fileno()

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._queue.arrived(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self.lost = exc
        self._fd = -1
        self._queue.arrived(self, b"")

    @property
    def usable(self) -> bool:
        """Another request can be sent."""
        return self._keep_alive and self._transport is not None and not self._transport.is_closing()

    @property
    def ends_with_connection(self) -> bool:
        """The answer in hand has no length of its own: the connection's end is its end."""
        return self._status != 0 and not self._framed

    def send(self, exchange: Exchange, request: bytes, *, at: float) -> None:
        """Hand the request to the socket, at once where the event loop would wait for its next turn."""
        self.exchange = exchange
        self.requests += 1
        self.heard = self.complete = self._framed = False
        self._status, self._content_type, self._head_bytes = 0, b"", 0
        exchange.was_sent(at)
        rest = request
        if self._fd >= 0:
            try:
                rest = request[os.write(self._fd, request) :]
            except BlockingIOError:
                pass
            except OSError:
                self.abort()  # the loop reports the loss, as for a connection that the server closed
                return
        if rest and self._transport is not None:
            self._transport.write(rest)

    def abort(self) -> None:
        """Close without a goodbye."""
        self._fd = -1
        if self._transport is not None:
            self._transport.abort()

    def take_in(self, data: bytes, at: float) -> None:
        """Parse bytes that arrived at `at` and pass them to the exchange."""
        exchange = self.exchange
        if exchange is None:
            return
        self.heard = True
        try:
            self._parser.feed_data(data)
        except HttpParserCallbackError:
            raise
        except (HttpParserError, HttpParserUpgrade) as error:
            self.broken = f"the server does not speak HTTP/1.1 as it should ({error})"
        if exchange.headers_at is None and self._status:
            exchange.answered(self._status, at, is_stream=not self._content_type.startswith(_NO_STREAMS))
        if self._pieces:
            body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            exchange.received(body, at)
        else:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and self.broken is None:
                self.broken = f"the answer has more than {MAX_HEAD_BYTES >> 20} MiB of headers"

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        match name.lower():
            case b"content-type":
                self._content_type = value.lower()
            case b"content-length" | b"transfer-encoding":
                self._framed = True

    def on_headers_complete(self) -> None:
        """Called by the parser; interim answers (1xx) are passed over."""
        status = self._parser.get_status_code()
        if status >= 200:
            self._status = status
            self._keep_alive = self._parser.should_keep_alive()

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self.complete = self._status != 0
