"""A real HTTP server whose behaviour each test scripts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.loadgen.tcp_server import TcpServer

SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(eq=False)
class Served:
    """One request as the server received it, and the means to respond."""

    number: int
    """Count of requests over all connections, from 0."""
    connection: int
    head: str
    content: dict[str, Any]
    writer: asyncio.StreamWriter

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, content: dict[str, Any]) -> None:
        await self.chunk(b"data: " + json.dumps(content).encode() + b"\n\n")

    async def token(self, count: int) -> None:
        await self.event(
            {"choices": [{"index": 0, "text": f" {count}"}], "usage": {"prompt_tokens": 5, "completion_tokens": count}}
        )

    async def tokens(self, count: int, *, gap: float = 0.0) -> None:
        for number in range(1, count + 1):
            await self.token(number)
            await asyncio.sleep(gap)

    async def end(self) -> None:
        await self.chunk(b"data: [DONE]\n\n")
        await self.raw(b"0\r\n\r\n")

    async def status(self, line: str, body: bytes) -> None:
        head = f"HTTP/1.1 {line}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        await self.raw(head.encode() + body)


Script = Callable[[Served], Awaitable[None]]


async def three_tokens(request: Served) -> None:
    await request.raw(SSE_HEAD)
    await request.tokens(3)
    await request.end()


class ScriptedServer(TcpServer):
    """Runs `script` for every request; a connection that the script leaves open is kept alive."""

    def __init__(self) -> None:
        super().__init__()
        self.script: Script = three_tokens
        self.served: list[Served] = []
        self.connections = 0
        self.active = 0
        self.most_active = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length")
                )
                content = json.loads(await reader.readexactly(length))
                request = Served(len(self.served), connection, head, content, writer)
                self.served.append(request)
                self.active += 1
                self.most_active = max(self.most_active, self.active)
                try:
                    await self.script(request)
                finally:
                    self.active -= 1
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def then_stall(data: bytes) -> Script:
    """Respond with two tokens and `data`, and keep the connection open."""

    async def script(request: Served) -> None:
        await request.raw(SSE_HEAD)
        await request.tokens(2)
        await request.raw(data)
        await asyncio.sleep(30)

    return script
