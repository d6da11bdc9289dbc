"""Commands that all senders of a pool apply at the same run time, whenever each of them received it."""

from __future__ import annotations

import math
from collections import deque

from servetop.core.clock import MonotonicClock
from servetop.loadgen.messages import TimedCommand
from servetop.loadgen.pacing import deadline_timer
from servetop.loadgen.sender.sender import Sender


class ScheduledCommands:
    """Holds timed commands until they are due; the schedule does not pass the next one before it is applied."""

    def __init__(self, sender: Sender, clock: MonotonicClock) -> None:
        self._sender = sender
        self._waiting: deque[TimedCommand] = deque()
        self._timer = deadline_timer(clock, self._apply_due)
        self._clock = clock

    def add(self, timed: TimedCommand) -> None:
        """Schedule a command; they arrive in order of their times, and a late one is applied at once as of its time."""
        self._waiting.append(timed)
        self._apply_due()

    def _apply_due(self) -> None:
        while self._waiting and self._waiting[0].at <= self._clock.now():
            self._sender.apply_timed(self._waiting.popleft())
        at = self._waiting[0].at if self._waiting else math.inf
        self._sender.barrier = at
        self._timer.arm(at)

    def close(self) -> None:
        """Discard the commands that have not been applied."""
        self._waiting.clear()
        self._timer.close()
