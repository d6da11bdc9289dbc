"""One HTTP/1.1 keep-alive connection: writes requests and parses timestamped reads, one request at a time."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
from typing import Protocol, Self, cast

from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.transport.epoll_reader import PlainSocket
from servetop.loadgen.transport.response_parser import ResponseParser

MAX_HEAD_BYTES = 1 << 20
"""Headers and trailers of one response; the parser would buffer an endless header without limit."""
_MAX_DEFERRED = 32
"""Events. They are flushed at the end of each tick anyway, which comes first for most streams; a flush has a cost."""


class ReadHandler(Protocol):
    """Receives a connection's reads and passes them to its `parse`."""

    def stamped(self, connection: Http1Connection, data: bytes, at: float) -> None:
        """Handle a read that the kernel timestamped."""
        ...

    def flush(self, connection: Http1Connection) -> None:
        """Flush the deferred events of the connection's request, because there are enough of them."""
        ...

    def unstamped(self, connection: Http1Connection, data: bytes) -> None:
        """Handle a read without a timestamp; empty: the connection was lost."""
        ...


class ByteWriter(Protocol):
    """The part of asyncio.Transport that a connection needs; a PlainSocket has it too."""

    def write(self, data: bytes) -> None:
        """Send the data now or as soon as the socket accepts it."""
        ...

    def abort(self) -> None:
        """Close at once and discard unsent data."""
        ...

    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        ...


class Http1Connection(asyncio.Protocol):
    """Sends with `send`; reads come from a PlainSocket, or from the event loop as an asyncio protocol."""

    def __init__(self, handler: ReadHandler) -> None:
        self.request: RequestState | None = None
        self.requests = 0
        """Requests sent on this connection so far."""
        self.response_started = False
        """Some bytes of the current response have arrived."""
        self.complete = False
        """The current response has arrived completely."""
        self.protocol_error: str | None = None
        """Why the response is not valid HTTP; the connection is unusable then."""
        self.error: Exception | None = None
        """Why the connection was lost; None: closed, or not lost."""
        self.not_before = 0.0
        self._handler = handler
        self.plain: PlainSocket | None = None
        """The socket, if it is read by a SocketPoller."""
        self._writer: ByteWriter | None = None
        self._fd = -1
        """File descriptor of the open plain socket, for direct writes; else -1."""
        self._body_parts: list[bytes] = []
        self._status = 0
        self._coding = self._media_type = self._location = b""
        self._head_bytes = 0
        self._framed = False
        self._keep_alive = True
        self._between_chunks = False
        """The parser has read a whole HTTP chunk and nothing of the next one."""
        self._literals: tuple[bytes, bytes] | None = None
        self._prefixes: dict[int, bytes] = {}
        """Prefix of a regular event that arrives as one HTTP chunk, by the size of the read."""
        self._suffix = b""
        """Suffix of such an event."""
        self._suffix_start = 0
        self._parser = ResponseParser(self)

    def attach(self, plain: PlainSocket) -> Self:
        """Use a plain socket and return the connection."""
        self.plain = self._writer = plain
        self._fd = plain.fd
        return self

    def data_arrived(self, data: bytes, at: float) -> None:
        """Defer a read that is one regular event, as most are; pass on any other."""
        prefix = self._prefixes.get(len(data))
        if prefix is None and self._prefixes:
            prefix = self._prefix_of(data)
        request = self.request
        if prefix is not None and data.startswith(prefix) and data.endswith(self._suffix) and request is not None:
            deferred = request.deferred
            deferred.append((data[len(prefix) : self._suffix_start], at))
            if len(deferred) == _MAX_DEFERRED:
                self._handler.flush(self)
        else:
            self._handler.stamped(self, data, at)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._writer = cast("asyncio.Transport", transport)  # uvloop's transport has no base class of asyncio
        peer = transport.get_extra_info("socket")
        if peer is not None:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._handler.unstamped(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = exc
        self._fd = -1
        self._handler.unstamped(self, b"")

    @property
    def usable(self) -> bool:
        """Whether another request can be sent."""
        return self._keep_alive and self._writer is not None and not self._writer.is_closing()

    @property
    def ends_with_connection(self) -> bool:
        """Whether the current response has no declared length, so that it ends with the connection."""
        return self._status != 0 and not self._framed

    def send(self, request: RequestState, data: bytes, *, at: float) -> None:
        """Write a request to the socket; a plain socket is written directly, not at the event loop's next iteration."""
        self.request = request
        self.requests += 1
        self.response_started = self.complete = self._between_chunks = False
        self.not_before = at
        self._status, self._head_bytes = 0, 0
        self._parser.expect_response()
        request.mark_sent(at)
        if self.plain is not None:
            self.plain.backlogged = False
        rest = data
        if self._fd >= 0:
            try:
                rest = data[os.write(self._fd, data) :]
            except BlockingIOError:
                pass
            except OSError:
                self.abort()  # reported as lost at the loop's next iteration, like a connection that the server closed
                return
        if rest and self._writer is not None:
            self._writer.write(rest)

    def abort(self) -> None:
        """Close at once and discard unsent data."""
        self._fd = -1
        if self._writer is not None:
            self._writer.abort()

    def parse(self, data: bytes, at: float, *, since: float | None = None) -> bytes:
        """Parse a read that arrived at `at`, and not before `since`, and update the request.

        Return the last part of the body of a response that is complete: the request has not received it yet.
        """
        request = self.request
        if request is None:
            return b""
        if self._between_chunks:
            header = _chunk_header(len(data))
            if header and data.startswith(header) and data.endswith(b"\r\n"):
                request.body_received(data[len(header) : -2], at, since=since)
                self._expect_another(request, header, size=len(data))
                return b""
        self._literals = None
        self._prefixes.clear()
        self.response_started = True
        error = self._parser.feed(data, in_head=not self._status)
        if error is not None:
            self._keep_alive = False
            self.protocol_error = None if self.complete else error
        if request.headers_at is None and self._status:
            fields = (self._coding, self._media_type, self._location)
            coding, media_type, location = (field.decode("latin-1") for field in fields)
            request.headers_received(self._status, at, coding=coding, media_type=media_type, location=location)
        body = self._body_parts[0] if len(self._body_parts) == 1 else b"".join(self._body_parts)
        self._body_parts.clear()
        if self.complete:
            return body
        if body:
            request.body_received(body, at, since=since)
        else:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and self.protocol_error is None:
                self.protocol_error = f"the response has more than {MAX_HEAD_BYTES >> 20} MiB of headers"
        return b""

    def _expect_another(self, request: RequestState, header: bytes, *, size: int) -> None:
        """Prepare to recognise events like the last one, whose HTTP chunk had `size` bytes, without parsing them."""
        literals = request.frame_literals()
        if literals is not self._literals:
            self._literals = literals
            self._prefixes.clear()
        if literals is not None:
            self._suffix = literals[1] + b"\r\n"
            self._suffix_start = -len(self._suffix)
            if size > len(header) + len(literals[0]) + len(self._suffix):
                self._prefixes[size] = header + literals[0]

    def _prefix_of(self, data: bytes) -> bytes | None:
        """Return the prefix of a regular event that is the first of its size; None if `data` is not a regular event."""
        header = _chunk_header(len(data))
        if (
            self._literals is None
            or not header
            or len(data) <= len(header) + len(self._literals[0]) + len(self._suffix)
        ):
            return None
        prefix = header + self._literals[0]
        if not data.startswith(prefix):
            return None
        self._prefixes[len(data)] = prefix
        return prefix

    def on_message_begin(self) -> None:
        """Forget the head of the previous response; a callback of the parser, like the methods below."""
        if not self.complete:
            self._coding = self._media_type = self._location = b""
            self._framed = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store the header fields that matter."""
        if self.complete:
            return
        match name.lower():
            case b"content-encoding":
                self._coding = value
            case b"content-type":
                self._media_type = value
            case b"location":
                self._location = value
            case b"content-length" | b"transfer-encoding":
                self._framed = True

    def on_headers_complete(self) -> None:
        """Store the final response's status; interim responses (1xx) are skipped."""
        status = self._parser.status
        if self.complete:  # another response: servers may say why they close an idle connection (408)
            self._keep_alive = False
        elif status >= 200:
            self._status = status
            self._keep_alive = self._parser.should_keep_alive

    def on_body(self, part: bytes) -> None:
        """Store a part of the body; what follows a complete response is not of it."""
        if not self.complete:
            self._body_parts.append(part)

    def on_chunk_header(self) -> None:
        """Note that an HTTP chunk has started."""
        self._between_chunks = False

    def on_chunk_complete(self) -> None:
        """Note that an HTTP chunk is complete."""
        self._between_chunks = True

    def on_message_complete(self) -> None:
        """Note that the response is complete, unless it was an interim one."""
        self.complete = self._status != 0
        self._between_chunks = False


@functools.lru_cache(maxsize=4096)
def _chunk_header(size: int) -> bytes:
    """Return the header of an HTTP chunk of `size` bytes in total, as servers write it; empty if there is none."""
    for digits in range(1, 8):
        header = b"%x\r\n" % max(0, size - digits - 4)
        if len(header) == digits + 2 and header[0] != ord("0"):
            return header
    return b""
