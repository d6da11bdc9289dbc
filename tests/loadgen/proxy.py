"""A small forward proxy for CONNECT and absolute-form requests, which all go to one server."""

from __future__ import annotations

import asyncio
import base64
import contextlib

from tests.loadgen.tcp_server import TcpServer


class ForwardProxy(TcpServer):
    """Records the requests it receives; with `login`, requires `user:password`."""

    def __init__(self, to_port: int, *, login: str | None = None) -> None:
        super().__init__()
        self.request_lines: list[str] = []
        """First lines of the requests that reached it."""
        self.heads: list[str] = []
        self._to_port = to_port
        self._login = login

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.request_lines.append(head.split("\r\n")[0])
            self.heads.append(head)
            if not self._is_authorized(head):
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                await writer.drain()
            else:
                await self._forward(head, reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    def _is_authorized(self, head: str) -> bool:
        if self._login is None:
            return True
        return f"basic {base64.b64encode(self._login.encode()).decode()}".lower() in head.lower()

    async def _forward(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there = await asyncio.open_connection("127.0.0.1", self._to_port)
        back = asyncio.ensure_future(_copy(there_reader, writer))
        try:
            if head.startswith("CONNECT"):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _copy(reader, there)
            else:
                await _requests(head, reader, there)
            await back
        finally:
            back.cancel()
            there.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()


async def _requests(head: str, reader: asyncio.StreamReader, there: asyncio.StreamWriter) -> None:
    """Forward requests in origin form, without the header fields for the proxy."""
    while True:
        first, *fields = head.rstrip().split("\r\n")
        method, target, version = first.split(" ")
        path = "/" + target.removeprefix("http://").partition("/")[2]
        kept = [field for field in fields if not field.lower().startswith("proxy-")]
        there.write("\r\n".join([f"{method} {path} {version}", *kept, "", ""]).encode())
        sizes = [int(field.split(":")[1]) for field in fields if field.lower().startswith("content-length")]
        there.write(await reader.readexactly(sum(sizes)))
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
