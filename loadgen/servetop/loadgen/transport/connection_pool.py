"""The connection pool: keep-alive connections to one server, reused or opened on demand and ahead of demand."""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol

from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.transport.endpoint import Endpoint
from servetop.loadgen.transport.epoll_reader import SocketPoller
from servetop.loadgen.transport.http1 import Http1Connection, ReadHandler


class PoolListener(ReadHandler, Protocol):
    """Uses the connections of a pool, and handles what is read from them."""

    def connected(self, connection: Http1Connection, request: RequestState) -> None:
        """Handle a connection that was opened for a request."""
        ...

    def connect_failed(self, request: RequestState, reason: str) -> None:
        """Handle a request for which no connection could be opened."""
        ...


class _Attempt:
    """A connection that is being opened, for a request or, if it is None, ahead of demand."""

    __slots__ = ("request",)

    def __init__(self, request: RequestState | None) -> None:
        self.request = request


class ConnectionPool:
    """Has no size limit and hands out the most recently used connection first; created on the running event loop."""

    def __init__(self, endpoint: Endpoint, *, listener: PoolListener, poller: SocketPoller | None) -> None:
        self._endpoint = endpoint
        self._tls: ssl.SSLContext | None = endpoint.tls_context()
        self._listener = listener
        self._poller = poller
        self._loop = asyncio.get_running_loop()
        self._addresses: list[str] = []
        self._idle: dict[Http1Connection, None] = {}
        self._attempts: dict[_Attempt, asyncio.Task[None]] = {}
        self._refused = False
        """The last attempt failed: nothing is opened ahead of demand."""
        self._closed = False

    def take(self) -> Http1Connection | None:
        """Remove and return an idle connection that is still usable; None if there is none."""
        while self._idle:
            connection, _ = self._idle.popitem()
            if connection.usable:
                return connection
        return None

    def put(self, connection: Http1Connection) -> None:
        """Return a connection whose response is complete."""
        self._idle[connection] = None

    def discard(self, connection: Http1Connection) -> None:
        """Forget a connection that was lost or must not be used again."""
        self._idle.pop(connection, None)

    def connect_for(self, request: RequestState) -> None:
        """Assign a connection that is being opened ahead of demand to a request, or open another one."""
        for attempt in self._attempts:
            if attempt.request is None:
                attempt.request = request
                return
        self.open(request)

    def forget(self, request: RequestState) -> None:
        """Keep the connection that is being opened for a request, but not for that request."""
        for attempt in self._attempts:
            if attempt.request is request:
                attempt.request = None

    def keep_ready(self, connections: int) -> None:
        """Open connections until this many are idle or being opened, unless the last attempt failed."""
        if self._refused:
            return
        opening = sum(attempt.request is None for attempt in self._attempts)
        for _ in range(connections - len(self._idle) - opening):
            self.open(None)

    def open(self, request: RequestState | None) -> None:
        """Open a connection for a request, or ahead of demand."""
        if self._closed:
            return  # an attempt that failed during `close` must not be repeated
        attempt = _Attempt(request)
        self._attempts[attempt] = self._loop.create_task(self._run(attempt))

    async def _run(self, attempt: _Attempt) -> None:
        try:
            connection = await self._connect()
        except (OSError, UnicodeError) as error:
            self._refused = True
            del self._attempts[attempt]
            if attempt.request is not None:
                self._listener.connect_failed(attempt.request, self._endpoint.connect_error(error))
            return
        self._refused = False
        del self._attempts[attempt]
        if attempt.request is not None:
            self._listener.connected(connection, attempt.request)
        else:
            self._idle[connection] = None

    async def _connect(self) -> Http1Connection:
        """Connect to the first of the host's addresses that accepts; it is tried first from then on."""
        port = self._endpoint.port
        if not self._addresses:
            found = await self._loop.getaddrinfo(self._endpoint.host, port, type=1)
            self._addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
        failure: OSError = OSError("no address to connect to")
        for address in tuple(self._addresses):
            try:
                connection = await self._connect_to(address, port)
            except OSError as error:
                failure = error
            else:
                self._addresses.sort(key=lambda each: each != address)
                return connection
        raise failure

    async def _connect_to(self, address: str, port: int) -> Http1Connection:
        if self._poller is not None:
            connection = Http1Connection(self._listener)
            return connection.attach(await self._poller.connect(address, port, connection))
        name = self._endpoint.host if self._tls is not None else None
        _, connection = await self._loop.create_connection(
            lambda: Http1Connection(self._listener), address, port, ssl=self._tls, server_hostname=name
        )
        return connection

    async def close(self) -> None:
        """Cancel the attempts and close the idle connections."""
        self._closed = True
        tasks = list(self._attempts.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._idle:
            connection.abort()
        self._idle.clear()
