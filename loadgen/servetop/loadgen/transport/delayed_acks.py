"""Delayed TCP acknowledgements: sending one costs the client more than reading the event that it acknowledges.

The kernel acknowledges each small segment as soon as it is read. With TCP_QUICKACK off (tcp(7)) it acknowledges every
other one, and each within 40 ms. A server with Nagle's algorithm enabled delays its next event until the last one is
acknowledged, so the mode is tried on one stream first: if events keep arriving faster than that, the server does not
wait for acknowledgements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

FAST_SECONDS = 0.02
"""Longest mean gap between events for which the mode is useful, and a waiting server recognisable."""
STALL_SECONDS = 0.035
"""Slightly less than the shortest delay of an acknowledgement (TCP_DELACK_MIN)."""
TRIAL_EVENTS = 8
"""Length of a trial; acknowledgements are omitted between its first two events."""
TRIALS = 3
"""More than one, because engines also stall for other reasons; a waiting server delays one event per trial by 40 ms."""
ABANDONED_SECONDS = 1.0
"""Time after which a trial whose stream has ended is abandoned."""


class AckSocket(Protocol):
    """A socket whose acknowledgements can be delayed."""

    def delay_acks(self) -> None:
        """Acknowledge every other segment until the kernel leaves that mode."""
        ...


class DelayedAcks:
    """Decides whether to delay acknowledgements on the connections to one server."""

    def __init__(self) -> None:
        self._proven = False
        self._trials = TRIALS
        self._tried: AckSocket | None = None
        self._last = 0.0
        self._seen = 0

    def observe(self, sock: AckSocket, events: Sequence[tuple[bytes, float]]) -> None:
        """Evaluate consecutive events of one stream, each with its run time."""
        first, last = events[0][1], events[-1][1]
        if sock is self._tried:
            self._judge(events)
        if last - first > FAST_SECONDS * (len(events) - 1) or len(events) < 2:
            return
        if self._proven:
            sock.delay_acks()
        elif self._trials and (self._tried is None or last > self._last + ABANDONED_SECONDS):
            self._tried, self._last, self._seen = sock, last, 0
            sock.delay_acks()

    def _judge(self, events: Sequence[tuple[bytes, float]]) -> None:
        for _, at in events:
            if at - self._last > STALL_SECONDS:
                self._tried = None
                self._trials -= 1
                return
            self._last = at
        self._seen += len(events)
        if self._seen >= TRIAL_EVENTS:
            self._tried, self._proven = None, True
