"""A real HTTP server whose behaviour each test scripts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

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


class ScriptedServer:
    """Runs `script` for every request; a connection that the script leaves open is kept alive."""

    def __init__(self) -> None:
        self.script: Script = three_tokens
        self.served: list[Served] = []
        self.connections = 0
        self.active = 0
        self.most_active = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str = "127.0.0.1", *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._accept, host, port, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{name}:{self.port}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()
