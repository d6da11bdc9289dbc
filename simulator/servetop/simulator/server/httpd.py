"""A small HTTP/1.1 server for many long token streams (server-sent events) on one event loop."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import httptools

if TYPE_CHECKING:
    from servetop.simulator.server.completion import Completion

REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Payload Too Large",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
}
BODY_LIMIT = 64 * 2**20
HEAD_LIMIT = 64 * 2**10
"""Bytes of a request line and its header fields."""
LINGER_SECONDS = 1.0
STREAM_END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return one chunk in chunked transfer coding; `data` must not be empty."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One complete request."""

    method: str
    path: str
    body: bytes
    keep_alive: bool
    accept: bytes = b""
    """The value of the Accept header; empty if there is none."""
    authorization: bytes = b""
    """The value of the Authorization header."""


class Connection(asyncio.Protocol):
    """One client connection; each request in turn needs one `respond`, or `start_stream`, `send`s and `finish`.

    `on_disconnect`, if set, is called when the client disconnects before its response is complete.
    """

    def __init__(self, route: Callable[[HttpRequest, Connection], None], *, connections: set[Connection]) -> None:
        self._route = route
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._descriptor = -1
        self._url = self._accept = self._authorization = b""
        self._body: list[bytes] = []
        self._size = 0
        self._head_size = 0
        self._head_open = False
        self._input_ignored = self._refused = False
        self._queue: deque[HttpRequest] = deque()
        self._busy = False
        self._keep_alive = True
        self.on_disconnect: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection of a new client."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are not subclasses
        self._descriptor = self._transport.get_extra_info("socket").fileno()
        self._connections.add(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Unregister the closed connection and report a disconnected client."""
        self._connections.discard(self)
        self._transport = None
        self._queue.clear()
        on_disconnect, self.on_disconnect = self.on_disconnect, None
        if on_disconnect is not None:
            on_disconnect()

    def data_received(self, data: bytes) -> None:
        """Parse the bytes of a request; refuse a malformed or oversized one."""
        if self._input_ignored:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._input_ignored = True  # the upgrade is ignored; its request is the last of this connection
        except httptools.HttpParserError as error:
            self._refuse(400, f"not an HTTP request ({error})")
        self._head_size = self._head_size + len(data) if self._head_open else 0
        if self._head_size > HEAD_LIMIT:
            self._refuse(431, "the header section is larger than 64 KiB")

    def on_message_begin(self) -> None:
        """Start a new request."""
        self._url, self._body, self._size, self._accept, self._authorization = b"", [], 0, b"", b""
        self._head_open = True

    def on_url(self, url: bytes) -> None:
        """Collect a part of the request target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store the headers Accept and Authorization; ignore all others."""
        if name.lower() == b"accept":
            self._accept = value
        elif name.lower() == b"authorization":
            self._authorization = value

    def on_headers_complete(self) -> None:
        """End the header section."""
        self._head_open = False

    def on_body(self, body: bytes) -> None:
        """Collect a part of the body; refuse a body that is too large."""
        self._size += len(body)
        if self._size > BODY_LIMIT:
            self._refuse(413, "the body is larger than 64 MiB")
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Handle a complete request; an upgrade request is the last of its connection."""
        if self._input_ignored:
            return
        path = self._url.partition(b"?")[0].decode("latin-1")
        method = self._parser.get_method().decode("ascii")
        keep_alive = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        self._queue.append(
            HttpRequest(method, path, b"".join(self._body), keep_alive, self._accept, self._authorization)
        )
        self._next()

    def respond(
        self,
        status: int,
        body: bytes,
        *,
        content_type: bytes = b"application/json",
        headers: Mapping[str, object] | None = None,
    ) -> None:
        """Send a complete response and finish it."""
        head = b"HTTP/1.1 %d %s\r\nserver: servetop-sim\r\ncontent-length: %d\r\ncontent-type: %s\r\n" % (
            status,
            REASONS.get(status, "Error").encode(),
            len(body),
            content_type,
        )
        extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items()).encode()
        self.send(head + extra + self._connection_header() + b"\r\n" + body)
        self.finish()

    def expect(self, completion: Completion) -> None:
        """Receive a completion of the current request, before its first token; for subclasses that observe it."""

    def start_stream(self) -> None:
        """Send the HTTP head of a server-sent event stream; `send` the chunks, then `finish`."""
        self.send(
            b"HTTP/1.1 200 OK\r\nserver: servetop-sim\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
            b"transfer-encoding: chunked\r\n" + self._connection_header() + b"\r\n"
        )

    def send(self, data: bytes) -> None:
        """Send raw bytes of the response immediately; drop them if the client has disconnected.

        They are written directly to the socket while the transport's buffer is empty. Event loops defer writes to the
        end of their turn, so the first token of a large batch would wait until the last one is rendered. Bytes that
        a slow client's socket does not accept are left to the transport.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not transport.get_write_buffer_size():
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                pass
            except OSError:
                transport.abort()
                return
        if data:
            transport.write(data)

    def finish(self) -> None:
        """Complete the response: close the connection, or schedule its next request.

        The next request must wait because the engine may emit the last token in the middle of an iteration.
        """
        self.on_disconnect = None
        self._busy = False
        if self._transport is not None and not self._keep_alive:
            self._close(self._transport)
            self._queue.clear()
        if self._queue:
            asyncio.get_running_loop().call_soon(self._next)

    def _close(self, transport: asyncio.Transport) -> None:
        """Close the connection; after an error, drain the request briefly so that no reset overtakes the response."""
        if not self._refused or transport.is_closing():
            transport.close()
            return
        transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, transport.abort)

    def abort(self) -> None:
        """Close the connection without a response."""
        if self._transport is not None:
            self._transport.abort()

    def _connection_header(self) -> bytes:
        return b"" if self._keep_alive else b"connection: close\r\n"

    def _next(self) -> None:
        if self._queue and not self._busy:
            self._busy = True
            request = self._queue.popleft()
            self._keep_alive = request.keep_alive
            self._route(request, self)

    def _refuse(self, status: int, message: str) -> None:
        if self._input_ignored:
            return
        self._input_ignored = self._refused = True
        self._queue.clear()
        if self._busy:  # a response is in progress, and the error must not be mixed into it
            self.abort()
            return
        self._keep_alive = False
        self.respond(
            status, b'{"error":{"message":"%s","type":"BadRequestError","code":%d}}' % (message.encode(), status)
        )
