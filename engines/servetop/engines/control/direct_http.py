"""Control-plane requests to one server over a small connection pool; httpx is used only for proxies.

Importing httpx takes longer than everything else before the first request of a run.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from servetop.engines.control.http_body import Body, RawResponse, ResponseError

MAX_HEAD_BYTES = 1 << 16
"""Maximum bytes of a response's status line and headers."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


class ConnectError(OSError):
    """No connection could be established."""


class ProtocolError(Exception):
    """The bytes received are not a valid response."""


class DirectHttp:
    """A connection pool with keep-alive, of one connection per concurrent request; names of headers are lower case."""

    def __init__(self, url: str, *, headers: Mapping[str, str], context: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]
        self._context = context
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
        fields = {"host": host, "user-agent": "servetop", **headers}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._idle: list[_Connection] = []
        self._closed = False

    async def request(self, method: str, path: str, body: bytes | None) -> RawResponse:
        """Send one request with an optional JSON body; return the response with its decoded body.

        Raises ConnectError and other OSErrors, ProtocolError and ResponseError. A kept connection that the server has
        closed is replaced by a new one.
        """
        body_headers = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        request = f"{method} {path} HTTP/1.1\r\n{self._head}{body_headers}\r\n".encode("ascii") + (body or b"")
        while self._idle:
            kept = self._idle.pop()
            try:
                return await self._send(kept, request)
            except _ClosedEarly:
                continue
        return await self._send(await self._connect(), request)

    async def _send(self, connection: _Connection, request: bytes) -> RawResponse:
        try:
            result = await connection.request(request)
        except BaseException:
            connection.close()
            raise
        if result.keep_alive and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()
        return RawResponse(result.status, result.body, result.location)

    async def _connect(self) -> _Connection:
        if self._closed:
            raise ProtocolError("the client has been closed")
        try:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(_Connection, self._host, self._port, ssl=self._context)
            return connection
        except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            raise ConnectError(str(error)) from error

    async def close(self) -> None:
        """Close the idle connections; later requests raise ProtocolError."""
        self._closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()


class _ClosedEarly(ProtocolError):
    """The server closed the connection before sending a byte."""


class _Connection(asyncio.Protocol):
    """One connection, which carries one request at a time, and parses its response as it arrives."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._response: _Response | None = None
        """The response that is awaited; None between two requests."""
        self._received: asyncio.Future[None] | None = None
        """Done when it is complete, or cannot be any more."""

    async def request(self, request: bytes) -> _Response:
        """Send a request and read the response."""
        if self._transport is None or self._transport.is_closing():
            raise _ClosedEarly("it closed the connection between two requests")
        self._response = response = _Response()
        self._received = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            await self._received
        finally:
            self._response = self._received = None
            response.release()
        return response

    def close(self) -> None:
        """Close the connection immediately, without a TLS shutdown."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not of that class

    def data_received(self, data: bytes) -> None:
        """Called by the event loop; what was not requested would be taken for the next response."""
        if self._response is None or self._received is None:
            self.close()
        elif self._received.done():
            self._response.keep_alive = False
        else:
            try:
                if self._response.feed(data):
                    self._received.set_result(None)
            except (ProtocolError, ResponseError) as error:
                self._received.set_exception(error)

    def eof_received(self) -> None:
        """Called by the event loop: the response ends with the connection, which is closed."""
        if self._response is not None and self._received is not None and not self._received.done():
            try:
                self._response.end()
                self._received.set_result(None)
            except ProtocolError as error:
                self._received.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._transport = None
        if exc is None:
            self.eof_received()
        elif self._response is not None and self._received is not None and not self._received.done():
            unused = isinstance(exc, ConnectionError) and not self._response.received
            self._received.set_exception(_ClosedEarly(str(exc)) if unused else exc)


class _Response:
    """A response in progress; the HTTP parser calls its `on_` methods."""

    def __init__(self) -> None:
        self.received = 0
        """Bytes received."""
        self.status = 0
        self.body = b""
        self.location = ""
        self.keep_alive = False
        self._has_head = self._complete = self._has_length = self._has_excess = False
        self._encoding = ""
        self._content: Body | None = None
        self._pieces: list[bytes] = []
        self._parser: HttpResponseParser | None = HttpResponseParser(self)

    def feed(self, data: bytes) -> bool:
        """Parse the next bytes; True when the response is complete."""
        assert self._parser is not None
        self.received += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            raise ProtocolError("it switches to another protocol") from None
        except HttpParserError as error:
            if not self._complete:
                raise ProtocolError(f"it sends malformed HTTP ({error})") from error
            self._has_excess = True
        if not self._has_head:
            if self.received > MAX_HEAD_BYTES:
                raise ResponseError(f"its response headers are longer than {MAX_HEAD_BYTES >> 10} KiB: discarded")
            return False
        body = self._content = self._content or Body(self._encoding)
        for piece in self._pieces:
            body.take(piece)
        self._pieces.clear()
        if self._complete:
            self.body = body.whole()
            self.keep_alive = self.keep_alive and not self._has_excess
        return self._complete

    def end(self) -> None:
        """Handle the end of the connection, which completes a response without a length."""
        if not self.received:
            raise _ClosedEarly("it closed the connection without a response")
        if self._content is None or self._has_length:
            raise ProtocolError("it closed the connection in the middle of its response")
        self.body = self._content.whole()

    def release(self) -> None:
        """Let go of the parser, which refers to the response: pages are then freed without garbage collection."""
        self._parser = self._content = None

    def on_message_begin(self) -> None:
        """Reset the response; called again after an interim response (1xx)."""
        self._has_excess = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Record a header; trailers and headers after the complete response are ignored."""
        if self._has_head:
            return
        match name.lower():
            case b"content-length" | b"transfer-encoding":
                self._has_length = True
            case b"content-encoding":
                self._encoding = value.decode("latin-1")
            case b"location":
                self.location = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        assert self._parser is not None
        if not self._has_head and (status := self._parser.get_status_code()) >= 200:
            self.status, self._has_head = status, True

    def on_body(self, piece: bytes) -> None:
        """Called by the parser."""
        if not self._complete:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        assert self._parser is not None
        if self._has_head and not self._complete:
            self._complete, self.keep_alive = True, self._parser.should_keep_alive()
