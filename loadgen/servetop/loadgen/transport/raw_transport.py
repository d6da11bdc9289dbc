"""The default transport: HTTP/1.1 over pooled plain sockets, built for many concurrent streams.

The kernel timestamps what arrives. Where it cannot (TLS, systems other than Linux), all sockets that are ready are
timestamped before any of them is parsed, so that parsing one response does not delay the timestamps of others.
"""

from __future__ import annotations

import asyncio

from servetop.core.clock import MonotonicClock
from servetop.core.events import RequestStatus
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.transport.connection_pool import ConnectionPool, PoolListener
from servetop.loadgen.transport.delayed_acks import DelayedAcks
from servetop.loadgen.transport.endpoint import Endpoint
from servetop.loadgen.transport.epoll_reader import SocketPoller
from servetop.loadgen.transport.http1 import Http1Connection
from servetop.loadgen.transport.transport import LINGER_SECONDS, RequestListener, Transport


class RawTransport(Transport, PoolListener):
    """Reads plain sockets with its own epoll and TLS connections through asyncio; created on the running event loop."""

    def __init__(
        self, endpoint: Endpoint, *, path: str, request_ids: str, clock: MonotonicClock, listener: RequestListener
    ) -> None:
        self._endpoint = endpoint
        self._head = endpoint.head(path) + f"x-request-id: {request_ids}-".encode()
        self._clock = clock
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._busy: dict[int, Http1Connection] = {}
        polled = SocketPoller.available and not endpoint.tls
        self._complete: list[tuple[RequestState, bytes, float, float | None]] = []
        """Requests whose response is complete and not parsed to its end, with the rest, its time and `since`."""
        self._poller = (
            SocketPoller(clock, send_overdue=listener.send_overdue, all_parsed=self._end_requests) if polled else None
        )
        self._pool = ConnectionPool(endpoint, listener=self, poller=self._poller)
        self._acks = DelayedAcks()
        self._unparsed: list[tuple[Http1Connection, float, bytes]] = []

    # --- requests (Transport) ---

    def submit(self, request: RequestState) -> None:
        connection = self._pool.take()
        if connection is not None:
            self.connected(connection, request)
        else:
            self._pool.connect_for(request)

    def connected(self, connection: Http1Connection, request: RequestState) -> None:
        self._busy[request.id] = connection
        tail = f"{request.id}\r\ncontent-length: {len(request.body)}\r\n\r\n".encode()
        connection.send(request, b"".join((self._head, tail, request.body)), at=self._clock.now())
        if not request.retried:
            self._listener.request_sent(request)

    def connect_failed(self, request: RequestState, reason: str) -> None:
        request.connection_lost(reason, self._clock.now())
        self._listener.request_ended(request)

    def withdraw(self, request: RequestState) -> None:
        connection = self._busy.pop(request.id, None)
        if connection is not None:
            connection.request = None
            connection.abort()
        self._pool.forget(request)

    def keep_ready(self, connections: int) -> None:
        self._pool.keep_ready(connections)

    def catch_up(self) -> None:
        for connection in tuple(self._busy.values()):
            self.flush(connection)
            self._listener.send_overdue()

    async def close(self) -> None:
        await self._pool.close()
        for connection in self._busy.values():
            connection.request = None
            connection.abort()
        self._busy.clear()
        if self._poller is not None:
            self._poller.close()

    # --- reads (ReadHandler) ---

    def stamped(self, connection: Http1Connection, data: bytes, at: float) -> None:
        self._parse(connection, data, at, since=None if self._poller is None else self._poller.previous_poll_at)

    def flush(self, connection: Http1Connection) -> None:
        request = connection.request
        if request is not None and request.deferred:
            if connection.plain is not None:
                self._acks.observe(connection.plain, request.deferred)
            request.flush()
            now = self._clock.now()
            if self._poller is not None and request.sent is not None:
                self._poller.note_age(now - request.sent)
            self._update(connection, request, now)

    def unstamped(self, connection: Http1Connection, data: bytes) -> None:
        """Timestamp the read now and parse it at the loop's next iteration, after all sockets that are ready now."""
        if not self._unparsed:
            self._loop.call_soon(self._parse_all)
        self._unparsed.append((connection, self._clock.now(), data))

    def _parse_all(self) -> None:
        reads, self._unparsed = self._unparsed, []
        for connection, at, data in reads:
            if data:
                self._parse(connection, data, at)
            else:
                self._connection_lost(connection, at)
            self._listener.send_overdue()
        self._end_requests()

    def _parse(self, connection: Http1Connection, data: bytes, at: float, *, since: float | None = None) -> None:
        request = connection.request
        if request is None:  # withdrawn, or the server sends without a request
            self._pool.discard(connection)
            connection.abort()
            return
        rest = connection.parse(data, at, since=since)
        if connection.complete and request.first_token_at is not None and request.status is None:
            self._stamp(connection, request)
            self._release(connection, request, at)
            self._complete.append((request, rest, at, since))
            self._listener.response_complete(request, at)
            return
        if rest:
            request.body_received(rest, at, since=since)
        self._update(connection, request, at)

    def _end_requests(self) -> None:
        """Parse the rest of the responses that are complete: an engine ends those of a batch together."""
        ended, self._complete = self._complete, []
        for request, rest, at, since in ended:
            if rest:
                request.body_received(rest, at, since=since)
            request.body_complete(at)
            self._listener.request_ended(request)
            self._listener.send_overdue()

    def _stamp(self, connection: Http1Connection, request: RequestState) -> None:
        """Note whether the kernel timestamped what the connection read for the request."""
        if self._poller is not None and connection.plain is not None:
            request.stamped = self._poller.stamps and not connection.plain.backlogged

    def _update(self, connection: Http1Connection, request: RequestState, at: float) -> None:
        """Report what was parsed, and end the request if its response is complete or its outcome known."""
        self._stamp(connection, request)
        if not connection.complete:  # the chunks of a request that ends are counted with its record
            self._listener.chunks_received(request)
        if connection.protocol_error is not None:
            request.connection_lost(connection.protocol_error, at)
        if connection.complete:
            self._release(connection, request, at)
            request.body_complete(at)
            self._listener.request_ended(request)
        elif request.status is RequestStatus.OK:
            self._loop.call_later(LINGER_SECONDS, self._cut_off, connection, request)
        elif request.status is not None:
            self._cut_off(connection, request)

    def _release(self, connection: Http1Connection, request: RequestState, at: float) -> None:
        """Return the connection of a response that was complete at `at` to the pool, unless it cannot be reused."""
        if self._poller is not None and request.sent is not None:
            self._poller.note_duration(at - request.sent)
        del self._busy[request.id]
        connection.request = None
        if connection.usable and request.status is not RequestStatus.ERROR:
            self._pool.put(connection)
        else:
            connection.abort()

    def _cut_off(self, connection: Http1Connection, request: RequestState) -> None:
        """End a request whose outcome is known although its response has not ended."""
        if connection.request is request:
            self.withdraw(request)
            self._listener.request_ended(request)

    def _connection_lost(self, connection: Http1Connection, at: float) -> None:
        """End the connection's request, or retry it once.

        The retry policy covers one case: the server had closed a keep-alive connection, so it never got the request.
        """
        self._pool.discard(connection)
        request, connection.request = connection.request, None
        if request is None:
            return
        self._busy.pop(request.id, None)
        if request.status is not None or connection.ends_with_connection:
            request.body_complete(at)
        elif not connection.response_started and connection.requests > 1 and not request.retried:
            request.retried = True  # the request never reached the server
            self._pool.open(request)
            return
        else:
            reason = self._endpoint.loss_reason(connection.error, response_started=connection.response_started)
            request.connection_lost(reason, at)
        self._listener.request_ended(request)
