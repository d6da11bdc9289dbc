"""How requests reach a server: the transport protocol, and the raw one, made for many streams at once.

The raw transport keeps connections open and reuses the one that was used last. What arrives is stamped by the kernel;
where that cannot be (TLS, other systems), for all sockets that are ready before any of them is parsed, so that parsing
one answer does not age the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from servetop.core.clock import MonotonicClock
from servetop.core.events import RequestStatus
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.transport.delayed_acks import DelayedAcks
from servetop.loadgen.transport.endpoint import Endpoint
from servetop.loadgen.transport.epoll_reader import SocketPoller
from servetop.loadgen.transport.http1 import Http1Connection

LINGER_SECONDS = 0.05
"""How long an answer's end may stay away after its end marker; then the connection is given up."""


class Transport(Protocol):
    """Carries exchanges; each submitted one is reported to `ended` once, unless it is withdrawn."""

    def submit(self, exchange: RequestState) -> None:
        """Send it as soon as a connection is there."""
        ...

    def withdraw(self, exchange: RequestState) -> None:
        """Forget it and close its connection."""
        ...

    def keep_ready(self, connections: int) -> None:
        """Open connections ahead until so many are idle or about to be."""
        ...

    def catch_up(self) -> None:
        """Take in all that has arrived."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class ExchangeListener(Protocol):
    """Who follows the exchanges."""

    def sent(self, exchange: RequestState) -> None:
        """Its bytes went to a socket, for the first time."""
        ...

    def progressed(self, exchange: RequestState) -> None:
        """Bytes of its answer were taken in."""
        ...

    def ended(self, exchange: RequestState) -> None:
        """Its outcome is known."""
        ...

    def send_overdue(self) -> None:
        """Much has arrived: now is the time for what cannot wait until all of it is taken in."""
        ...


class _Attempt:
    """A connection being opened, for one exchange or, with None, ahead of need."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: RequestState | None) -> None:
        self.exchange = exchange


class RawTransport:
    """asyncio protocols and httptools over kept-alive connections; made on the running event loop."""

    def __init__(
        self, endpoint: Endpoint, *, path: str, request_ids: str, clock: MonotonicClock, listener: ExchangeListener
    ) -> None:
        self._endpoint = endpoint
        self._head = endpoint.head(path) + f"x-request-id: {request_ids}-".encode()
        self._tls = endpoint.tls_context()
        self._clock = clock
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._addresses: list[str] = []
        self._idle: dict[Http1Connection, None] = {}
        self._busy: dict[int, Http1Connection] = {}
        self._attempts: dict[_Attempt, asyncio.Task[None]] = {}
        self._watch = (
            SocketPoller(clock, send_overdue=listener.send_overdue)
            if SocketPoller.available and self._tls is None
            else None
        )
        self._acks = DelayedAcks()
        self._unread: list[tuple[Http1Connection, float, bytes]] = []
        self._refusing = False
        self._closed = False

    def submit(self, exchange: RequestState) -> None:
        """See Transport."""
        while self._idle:
            connection, _ = self._idle.popitem()
            if connection.usable:
                self._send(connection, exchange)
                return
        for attempt in self._attempts:
            if attempt.exchange is None:
                attempt.exchange = exchange
                return
        self._open(exchange)

    def _send(self, connection: Http1Connection, exchange: RequestState) -> None:
        self._busy[exchange.id] = connection
        tail = f"{exchange.id}\r\ncontent-length: {len(exchange.body)}\r\n\r\n".encode()
        connection.send(exchange, b"".join((self._head, tail, exchange.body)), at=self._clock.now())
        if not exchange.retried:
            self._listener.sent(exchange)

    def withdraw(self, exchange: RequestState) -> None:
        """See Transport."""
        connection = self._busy.pop(exchange.id, None)
        if connection is not None:
            connection.exchange = None
            connection.abort()
        for attempt in self._attempts:
            if attempt.exchange is exchange:
                attempt.exchange = None

    def keep_ready(self, connections: int) -> None:
        """See Transport; nothing is opened ahead while the last attempt failed."""
        if self._refusing:
            return
        coming = sum(attempt.exchange is None for attempt in self._attempts)
        for _ in range(connections - len(self._idle) - coming):
            self._open(None)

    async def close(self) -> None:
        """See Transport."""
        self._closed = True
        tasks = list(self._attempts.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in [*self._idle, *self._busy.values()]:
            connection.exchange = None
            connection.abort()
        self._idle.clear()
        self._busy.clear()
        if self._watch is not None:
            self._watch.close()

    def _open(self, exchange: RequestState | None) -> None:
        if self._closed:
            return  # an attempt that failed while this closed would be made again
        attempt = _Attempt(exchange)
        self._attempts[attempt] = self._loop.create_task(self._connect(attempt))

    async def _connect(self, attempt: _Attempt) -> None:
        try:
            connection = await self._connection()
        except (OSError, UnicodeError) as error:
            self._refusing = True
            del self._attempts[attempt]
            if attempt.exchange is not None:
                attempt.exchange.broke(self._endpoint.why(error), self._clock.now())
                self._listener.ended(attempt.exchange)
            return
        self._refusing = False
        del self._attempts[attempt]
        if attempt.exchange is not None:
            self._send(connection, attempt.exchange)
        else:
            self._idle[connection] = None

    async def _connection(self) -> Http1Connection:
        """To the first of the host's addresses that takes it; that one is tried first from then on."""
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
        if self._watch is not None:
            plain = Http1Connection(self)
            return plain.over(await self._watch.connect(address, port, plain))
        name = self._endpoint.host if self._tls is not None else None
        _, connection = await self._loop.create_connection(
            lambda: Http1Connection(self), address, port, ssl=self._tls, server_hostname=name
        )
        return connection

    def stamped(self, connection: Http1Connection, data: bytes, at: float) -> None:
        """See Reads."""
        self._take_in(connection, data, at, since=None if self._watch is None else self._watch.looked_before)

    def put_aside(self, connection: Http1Connection) -> None:
        """See Reads."""
        exchange = connection.exchange
        if exchange is not None and exchange.aside:
            if connection.plain is not None:
                self._acks.follow(connection.plain, exchange.aside)
            exchange.settle()
            now = self._clock.now()
            if self._watch is not None and exchange.sent is not None:
                self._watch.takes_longer(now - exchange.sent)
            self._follow(connection, exchange, now)

    def catch_up(self) -> None:
        """See Transport."""
        for connection in tuple(self._busy.values()):
            self.put_aside(connection)
            self._listener.send_overdue()

    def unstamped(self, connection: Http1Connection, data: bytes) -> None:
        """See Reads: stamped now, taken in at the loop's next turn, after all sockets that are ready now."""
        if not self._unread:
            self._loop.call_soon(self._take_in_all)
        self._unread.append((connection, self._clock.now(), data))

    def _take_in_all(self) -> None:
        reads, self._unread = self._unread, []
        for connection, at, data in reads:
            if data:
                self._take_in(connection, data, at)
            else:
                self._lost(connection, at)
            self._listener.send_overdue()

    def _take_in(self, connection: Http1Connection, data: bytes, at: float, *, since: float | None = None) -> None:
        exchange = connection.exchange
        if exchange is None:  # withdrawn, or the server speaks unasked
            self._idle.pop(connection, None)
            connection.abort()
            return
        connection.take_in(data, at, since=since)
        self._follow(connection, exchange, at)

    def _follow(self, connection: Http1Connection, exchange: RequestState, at: float) -> None:
        """Something of its answer was taken in."""
        if self._watch is not None and connection.plain is not None:
            exchange.stamped = self._watch.stamps and not connection.plain.behind
        self._listener.progressed(exchange)
        if connection.broken is not None:
            exchange.broke(connection.broken, at)
        if connection.complete:
            if self._watch is not None and exchange.sent is not None:
                self._watch.took(at - exchange.sent)
            self._release(connection, exchange)
            exchange.complete(at)
            self._listener.ended(exchange)
        elif exchange.status is RequestStatus.OK:
            self._loop.call_later(LINGER_SECONDS, self._cut_off, connection, exchange)
        elif exchange.status is not None:
            self._cut_off(connection, exchange)

    def _release(self, connection: Http1Connection, exchange: RequestState) -> None:
        del self._busy[exchange.id]
        connection.exchange = None
        if connection.usable and exchange.status is not RequestStatus.ERROR:
            self._idle[connection] = None
        else:
            connection.abort()

    def _cut_off(self, connection: Http1Connection, exchange: RequestState) -> None:
        """End an exchange whose outcome is known although its answer has not ended."""
        if connection.exchange is exchange:
            self.withdraw(exchange)
            self._listener.ended(exchange)

    def _lost(self, connection: Http1Connection, at: float) -> None:
        self._idle.pop(connection, None)
        exchange, connection.exchange = connection.exchange, None
        if exchange is None:
            return
        self._busy.pop(exchange.id, None)
        if exchange.status is not None or connection.ends_with_connection:
            exchange.complete(at)
        elif not connection.heard and connection.requests > 1 and not exchange.retried:
            exchange.retried = True  # a kept-alive connection that the server had closed: the request never reached it
            self._open(exchange)
            return
        else:
            exchange.broke(self._endpoint.lost(connection.lost, heard=connection.heard), at)
        self._listener.ended(exchange)


ClientFactory = Callable[[ExchangeListener], Transport]
"""Makes a transport for a listener; called on the running event loop."""
