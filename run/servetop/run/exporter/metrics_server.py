"""A small HTTP server in the process of a run: GET /metrics, one response for each connection.

It belongs to the run's event loop, so a scraper that sends slowly, reads slowly or hangs must never occupy more than
one of a few connections for a few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from servetop.run.exporter.exposition import CONTENT_TYPES, prefers_openmetrics

PATH = "/metrics"
MOST_CONNECTIONS = 8
"""Connections at one time; a further one is closed at once with status 503."""
REQUEST_SECONDS, RESPONSE_SECONDS = 5.0, 10.0
"""Time for a scraper to send its request, and to take the response."""
LARGEST_REQUEST = 16 << 10
"""Bytes of a request's head."""
_TEXT = "text/plain; charset=utf-8"
_END = b"\r\n\r\n"


class MetricsServer:
    """Serves the text of the metrics; `text` returns it, as OpenMetrics or not."""

    def __init__(self, listening: socket.socket, text: Callable[[bool], str]) -> None:
        self._socket, self._text = listening, text
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def follow(self) -> None:
        """Answer until cancelled, also those that have connected before; then close the port."""
        try:
            self._server = await asyncio.start_server(self._accept, sock=self._socket, limit=LARGEST_REQUEST)
            await asyncio.Event().wait()
        finally:
            await self._close()

    async def _close(self) -> None:
        """Close the port and all connections."""
        if self._server is not None:
            self._server.close()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._socket.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer in a task of its own, which ends in time."""
        if len(self._tasks) >= MOST_CONNECTIONS:
            writer.write(_response(503, "Service Unavailable", "too many connections\n"))
            writer.close()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(REQUEST_SECONDS):
                    head = await _head(reader)
                async with asyncio.timeout(RESPONSE_SECONDS):
                    writer.write(self._answer(head))
                    writer.write_eof()
                    await writer.drain()
                    await reader.read(1)  # until the scraper closes: closing before it has read everything loses data
        finally:
            writer.transport.abort()

    def _answer(self, head: bytes) -> bytes:
        """Return the response to the head of a request."""
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _response(400, "Bad Request", "this is an HTTP server\n")
        method, path = words[0], words[1].partition("?")[0]
        if path != PATH:
            return _response(404, "Not Found", f"the metrics are at {PATH}\n")
        if method not in ("GET", "HEAD"):
            return _response(405, "Method Not Allowed", "use GET\n", more="Allow: GET, HEAD\r\n")
        openmetrics = prefers_openmetrics(_header(lines, "accept"))
        body = self._text(openmetrics)
        return _response(200, "OK", body, content_type=CONTENT_TYPES[openmetrics], without_body=method == "HEAD")


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Return the head of a request; of one that is too long nothing, which is answered as invalid."""
    try:
        return await reader.readuntil(_END)
    except asyncio.LimitOverrunError:
        return b""


def _header(lines: list[str], name: str) -> str:
    """Return all values of a header, with commas between them."""
    pairs = (line.partition(":") for line in lines)
    return ",".join(value.strip() for key, _, value in pairs if key.strip().lower() == name)


def _response(
    status: int, reason: str, body: str, *, content_type: str = _TEXT, more: str = "", without_body: bool = False
) -> bytes:
    data = body.encode("utf-8", "replace")
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{more}Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + (b"" if without_body else data)
