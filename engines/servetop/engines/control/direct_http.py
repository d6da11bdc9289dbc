"""Questions to one server over HTTP/1.1 connections of our own; with a proxy they go through httpx.

httpx takes longer to import than the rest of a run takes to its first request.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from servetop.engines.control.http_body import Body, ResponseError

LARGEST_HEAD = 1 << 16
"""Bytes of an answer's status line and headers."""
_READ_BYTES = 1 << 16
_DEFAULT_PORTS = {"http": 80, "https": 443}


class ConnectError(OSError):
    """No connection came about."""


class ProtocolError(Exception):
    """What came over a connection is no answer."""


class DirectHttp:
    """Keeps connections open between questions; as many as there are questions at once."""

    def __init__(self, url: str, *, headers: Mapping[str, str], context: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]
        self._path = parts.path
        self._context = context
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
        fields = {"Host": host, "Accept": "*/*", "User-Agent": "servetop", **headers}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._idle: list[_Connection] = []
        self._closed = False

    async def request(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Status and unpacked body; a body that is sent is JSON.

        ConnectError and other OSErrors, ProtocolError, AnswerError. A connection that was kept and has been closed by
        the server meanwhile is replaced by a new one.
        """
        entity = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        request = f"{method} {self._path}{path} HTTP/1.1\r\n{self._head}{entity}\r\n".encode("ascii") + (body or b"")
        while self._idle:
            kept = self._idle.pop()
            try:
                return await self._asked(kept, request)
            except _ClosedUnheard:
                continue
        return await self._asked(await self._connected(), request)

    async def _asked(self, connection: _Connection, request: bytes) -> tuple[int, bytes]:
        try:
            result = await connection.request(request)
        except BaseException:
            connection.close()
            raise
        if result.keep_alive and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()
        return result.status, result.body

    async def _connected(self) -> _Connection:
        if self._closed:
            raise ProtocolError("the client has been closed")
        try:
            return _Connection(*await asyncio.open_connection(self._host, self._port, ssl=self._context))
        except (OSError, UnicodeError) as error:  # UnicodeError: no host name
            raise ConnectError(str(error)) from error

    async def close(self) -> None:
        """Close the connections that no question uses; later questions are a ProtocolError."""
        self._closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()


class _ClosedUnheard(ProtocolError):
    """The server closed a connection without a byte of an answer."""


class _Connection:
    """One question at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def request(self, request: bytes) -> _Response:
        """The answer to a request."""
        result = _Response()
        try:
            self._writer.write(request)
            while data := await self._reader.read(_READ_BYTES):
                if result.take(data):
                    return result
        except ConnectionError as error:
            if not result.heard:
                raise _ClosedUnheard(str(error)) from error
            raise
        result.end()
        return result

    def close(self) -> None:
        """Without a goodbye."""
        self._writer.transport.abort()


class _Response:
    """One answer while it arrives; the parser calls it."""

    def __init__(self) -> None:
        self.heard = 0
        """Bytes."""
        self.status = 0
        self.body = b""
        self.keep_alive = False
        self._headed = self._complete = self._sized = self._followed = False
        self._encoding = ""
        self._content: Body | None = None
        self._pieces: list[bytes] = []
        self._parser = HttpResponseParser(self)

    def take(self, data: bytes) -> bool:
        """The next bytes; True when the answer is whole."""
        self.heard += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            raise ProtocolError("it switches to another protocol") from None
        except HttpParserError as error:
            if not self._complete:
                raise ProtocolError(f"it answers with broken HTTP ({error})") from error
            self._followed = True
        if not self._headed:
            if self.heard > LARGEST_HEAD:
                raise ResponseError(f"the headers of its answer are longer than {LARGEST_HEAD >> 10} KiB: not read")
            return False
        body = self._content = self._content or Body(self._encoding)
        for piece in self._pieces:
            body.take(piece)
        self._pieces.clear()
        if self._complete:
            self.body = body.whole()
            self.keep_alive = self.keep_alive and not self._followed
        return self._complete

    def end(self) -> None:
        """Nothing more comes: for an answer that does not say how long it is, that is its end."""
        if not self.heard:
            raise _ClosedUnheard("it closed the connection without an answer")
        if self._content is None or self._sized:
            raise ProtocolError("it closed the connection in the middle of its answer")
        self.body = self._content.whole()

    def on_message_begin(self) -> None:
        """Called by the parser: again behind an interim answer (1xx)."""
        self._followed = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser; for trailers and for what follows a whole answer too, which say nothing of it."""
        if self._headed:
            return
        match name.lower():
            case b"content-length" | b"transfer-encoding":
                self._sized = True
            case b"content-encoding":
                self._encoding = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        if not self._headed and (status := self._parser.get_status_code()) >= 200:
            self.status, self._headed = status, True

    def on_body(self, piece: bytes) -> None:
        """Called by the parser."""
        if not self._complete:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self._headed and not self._complete:
            self._complete, self.keep_alive = True, self._parser.should_keep_alive()
