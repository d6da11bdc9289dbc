"""Fewer TCP acknowledgements: sending one costs the client more than reading the event that it acknowledges.

The kernel acknowledges each small segment as soon as it is read. In its interactive mode (TCP_QUICKACK off, tcp(7)) it
acknowledges every other one, and none later than 40 ms after it came. A server that keeps Nagle's algorithm on holds
its next event back until the last one is acknowledged, so the mode is tried on one stream first: if events go on
coming in less time than that, the server waits for no acknowledgement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

FAST_SECONDS = 0.02
"""Mean time between the events of a stream up to which the mode is of use, and a server that waits is told apart."""
STALL_SECONDS = 0.035
"""A little less than the shortest delay of an acknowledgement (TCP_DELACK_MIN)."""
TRIAL_EVENTS = 8
"""Acknowledgements are left out between the first two of them."""
TRIALS = 3
"""Engines stall by themselves, too; a server that waits delays one event of each trial by 40 ms at most."""
ABANDONED_SECONDS = 1.0
"""After which a trial whose stream has ended is forgotten."""


class Acknowledging(Protocol):
    """A socket."""

    def delay_acks(self) -> None:
        """Have the kernel acknowledge every other segment, until it leaves that mode by itself."""
        ...


class DelayedAcks:
    """Decides for the connections to one server."""

    def __init__(self) -> None:
        self._proven = False
        self._trials = TRIALS
        self._tried: Acknowledging | None = None
        self._last = 0.0
        self._seen = 0

    def follow(self, sock: Acknowledging, events: Sequence[tuple[bytes, float]]) -> None:
        """These events of one stream came in a row, each with its run time."""
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
