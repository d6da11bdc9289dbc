"""A TCP server for tests that handles each connection in a task and can be stopped."""

from __future__ import annotations

import asyncio
import ssl


class TcpServer:
    """Calls `serve` for each connection; subclasses override it."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str = "127.0.0.1", *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._accept, host, port, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{name}:{self.port}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self.serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()
