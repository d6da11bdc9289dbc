"""Several servers behind the interface of one transport: requests go round, passing by those that are away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from servetop.core.clock import MonotonicClock
from servetop.core.events import RequestStatus
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.transport.endpoint import Endpoint
from servetop.loadgen.transport.raw_transport import ClientFactory, ExchangeListener, Transport

KNOCK_EVERY = 1.0
"""Seconds between looks whether a server that was away takes connections again."""
KNOCK_TIMEOUT = 1.0


class _Ear:
    """Hears what one replica's transport tells: all of it goes straight on, but for the end of an exchange."""

    def __init__(self, listener: ExchangeListener, *, ended: Callable[[RequestState], None]) -> None:
        self.sent = listener.sent
        self.progressed = listener.progressed
        self.send_overdue = listener.send_overdue
        self.ended = ended


class ReplicaTransport:
    """A `Transport` over one for each server; made on the running event loop.

    Request n goes to server n modulo their number, whichever sender plays it; a conversation to the server of its first
    request, as long as that is there. A server that takes no connection is away: its share is dealt to the others, and
    it is used again once it takes one. While all are away, requests go to each in turn, and fail.
    """

    def __init__(
        self,
        factories: Sequence[ClientFactory],
        endpoints: Sequence[Endpoint],
        *,
        clock: MonotonicClock,
        listener: ExchangeListener,
    ) -> None:
        self._endpoints = endpoints
        self._clock = clock
        self._listener = listener
        self._transports: Sequence[Transport] = [
            factory(_Ear(listener, ended=self._ended_at(place))) for place, factory in enumerate(factories)
        ]
        self._up = list(range(len(factories)))
        self._away: dict[int, float] = {}
        self._knocking: dict[int, asyncio.Task[None]] = {}

    def submit(self, exchange: RequestState) -> None:
        """See Transport; the exchange learns which replica it goes to."""
        key = exchange.conversation
        place = key % len(self._transports)
        if place in self._away and self._up:
            place = self._up[key % len(self._up)]
        exchange.replica = place
        self._transports[place].submit(exchange)

    def withdraw(self, exchange: RequestState) -> None:
        """See Transport."""
        if exchange.replica is not None:
            self._transports[exchange.replica].withdraw(exchange)

    def keep_ready(self, connections: int) -> None:
        """See Transport: an equal part at each server that is there."""
        share = -(-connections // max(len(self._up), 1))
        for place in self._up:
            self._transports[place].keep_ready(share)
        now = self._clock.now()
        for place, due in self._away.items():
            if now >= due and place not in self._knocking:
                self._knocking[place] = asyncio.ensure_future(self._knock(place))

    def catch_up(self) -> None:
        """See Transport."""
        for transport in self._transports:
            transport.catch_up()

    async def close(self) -> None:
        """See Transport."""
        for task in self._knocking.values():
            task.cancel()
        await asyncio.gather(*self._knocking.values(), return_exceptions=True)
        await asyncio.gather(*(transport.close() for transport in self._transports))

    def _ended_at(self, place: int) -> Callable[[RequestState], None]:
        def ended(exchange: RequestState) -> None:
            if exchange.sent is None and exchange.status is RequestStatus.ERROR:
                self._is_away(place)
            self._listener.ended(exchange)

        return ended

    def _is_away(self, place: int) -> None:
        self._away.setdefault(place, self._clock.now() + KNOCK_EVERY)
        self._up = [each for each in range(len(self._transports)) if each not in self._away]

    async def _knock(self, place: int) -> None:
        try:
            if await self._answers(self._endpoints[place]):
                del self._away[place]
                self._up = sorted([*self._up, place])
            else:
                self._away[place] = self._clock.now() + KNOCK_EVERY
        finally:
            del self._knocking[place]

    @staticmethod
    async def _answers(endpoint: Endpoint) -> bool:
        """It takes a connection; behind a proxy only a request can tell."""
        if endpoint.connection.proxy is not None:
            return True
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(KNOCK_TIMEOUT):
                _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
            writer.close()
            return True
        return False
