"""What a sender has ready before it is due: requests that only have to be written, connections that are open."""

from __future__ import annotations

from collections.abc import Callable

from servetop.core.clock import Clock
from servetop.core.wire import Dialect
from servetop.loadgen.dealing import Share
from servetop.loadgen.exchange import Exchange
from servetop.loadgen.outbox import Outbox
from servetop.loadgen.schedule import Schedule
from servetop.loadgen.stage_play import Due
from servetop.loadgen.transport import Transport

_FILL_SECONDS = 0.0005
"""Longest stretch of rendering ahead at one heartbeat."""


class Preparation:
    """Renders ahead, and makes the exchanges out of what was rendered."""

    def __init__(self, outbox: Outbox, share: Share, dialect: Dialect) -> None:
        self._outbox = outbox
        self._share = share
        self._dialect = dialect

    def exchange(self, due: Due, *, held_back: bool) -> Exchange:
        """The next request, under its number."""
        number = self._share.number()
        request = self._share.request(number, due, self._outbox)
        return Exchange(number, due, request=request, dialect=self._dialect, held_back=held_back)

    def requests(self, clock: Clock, *, between: Callable[[], None]) -> None:
        """At every heartbeat: some more of those that will be due; `between` two of them sends what is due now."""
        if self._share.working:
            self._outbox.fill(clock, seconds=_FILL_SECONDS, between=between)

    def connections(self, transport: Transport, *, schedule: Schedule | None, in_flight: int) -> None:
        """At every heartbeat: some more of those that will be of use soon."""
        self._share.follow()
        if schedule is not None:
            transport.keep_ready(self._share.connections(schedule.connections_wanted(in_flight)))
