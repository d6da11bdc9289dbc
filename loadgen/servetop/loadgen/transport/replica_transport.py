"""Several replicas behind one transport: round-robin load balancing with a health check.

A replica that refuses a connection is dropped from the rotation and probed once per second until it accepts one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from servetop.core.clock import MonotonicClock
from servetop.core.events import RequestStatus
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.transport.endpoint import Endpoint
from servetop.loadgen.transport.transport import RequestListener, Transport, TransportFactory

PROBE_SECONDS = 1.0
"""Interval of the health check of a replica that is down."""
PROBE_TIMEOUT = 1.0


class _ReplicaListener:
    """Listens to one replica's transport and forwards every event, except the end of a request."""

    def __init__(self, listener: RequestListener, *, request_ended: Callable[[RequestState], None]) -> None:
        self.request_sent = listener.request_sent
        self.chunks_received = listener.chunks_received
        self.send_overdue = listener.send_overdue
        self.response_complete = listener.response_complete
        self.request_ended = request_ended


class ReplicaTransport(Transport):
    """Distributes requests over one transport per replica; created on the running event loop.

    Request n goes to replica n modulo their number, whichever sender sends it; a conversation stays with the replica of
    its first request while that is up. The requests of a replica that is down go to the others. While all are down,
    requests are sent to each in turn and fail.
    """

    def __init__(
        self,
        factories: Sequence[TransportFactory],
        endpoints: Sequence[Endpoint],
        *,
        clock: MonotonicClock,
        listener: RequestListener,
    ) -> None:
        self._endpoints = endpoints
        self._clock = clock
        self._listener = listener
        self._transports: Sequence[Transport] = [
            factory(_ReplicaListener(listener, request_ended=self._on_end(replica)))
            for replica, factory in enumerate(factories)
        ]
        self._up = list(range(len(factories)))
        self._down: dict[int, float] = {}
        """Replicas that are down, each with the run time of its next probe."""
        self._probes: dict[int, asyncio.Task[None]] = {}

    def submit(self, request: RequestState) -> None:
        key = request.conversation
        replica = key % len(self._transports)
        if replica in self._down and self._up:
            replica = self._up[key % len(self._up)]
        request.replica = replica
        self._transports[replica].submit(request)

    def withdraw(self, request: RequestState) -> None:
        if request.replica is not None:
            self._transports[request.replica].withdraw(request)

    def keep_ready(self, connections: int) -> None:
        """Keep an equal part ready at each replica that is up, and probe those that are down."""
        part = -(-connections // max(len(self._up), 1))
        for replica in self._up:
            self._transports[replica].keep_ready(part)
        now = self._clock.now()
        for replica, due in self._down.items():
            if now >= due and replica not in self._probes:
                self._probes[replica] = asyncio.ensure_future(self._probe(replica))

    def catch_up(self) -> None:
        for transport in self._transports:
            transport.catch_up()

    async def close(self) -> None:
        for task in self._probes.values():
            task.cancel()
        await asyncio.gather(*self._probes.values(), return_exceptions=True)
        await asyncio.gather(*(transport.close() for transport in self._transports))

    def _on_end(self, replica: int) -> Callable[[RequestState], None]:
        def request_ended(request: RequestState) -> None:
            if request.sent is None and request.status is RequestStatus.ERROR:
                self._mark_down(replica)
            self._listener.request_ended(request)

        return request_ended

    def _mark_down(self, replica: int) -> None:
        self._down.setdefault(replica, self._clock.now() + PROBE_SECONDS)
        self._up = [each for each in range(len(self._transports)) if each not in self._down]

    async def _probe(self, replica: int) -> None:
        try:
            if await self._accepts(self._endpoints[replica]):
                del self._down[replica]
                self._up = sorted([*self._up, replica])
            else:
                self._down[replica] = self._clock.now() + PROBE_SECONDS
        finally:
            del self._probes[replica]

    @staticmethod
    async def _accepts(endpoint: Endpoint) -> bool:
        """Whether the replica accepts a connection; behind a proxy only a request can show that."""
        if endpoint.connection.proxy is not None:
            return True
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(PROBE_TIMEOUT):
                _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
            writer.close()
            return True
        return False
