"""Orders that several senders obey as one: all at the same run time, whenever each of them heard of it."""

from __future__ import annotations

import math
from collections import deque

from servetop.core.clock import MonotonicClock
from servetop.loadgen.messages import ToSender
from servetop.loadgen.sender.pacing import deadline_timer
from servetop.loadgen.sender.sender import Sender


class ScheduledCommands:
    """Holds a sender's orders back until their time, and its schedule from passing that time before it obeyed."""

    def __init__(self, sender: Sender, clock: MonotonicClock) -> None:
        self._sender = sender
        self._waiting: deque[ToSender] = deque()
        self._timer = deadline_timer(clock, self._keep)
        self._clock = clock

    def make(self, message: ToSender) -> None:
        """Orders come in the order of their times; one that is late is obeyed at once, as of its time."""
        self._waiting.append(message)
        self._keep()

    def _keep(self) -> None:
        while self._waiting and _time_of(self._waiting[0]) <= self._clock.now():
            self._obey(self._waiting.popleft())
        at = _time_of(self._waiting[0]) if self._waiting else math.inf
        self._sender.horizon = at
        self._timer.arm(at)

    def _obey(self, message: ToSender) -> None:
        if message.order is not None:
            self._sender.reach(message.order)
            if message.command is not None:
                self._sender.obey(message.command, message.order)

    def close(self) -> None:
        """Obey nothing more."""
        self._waiting.clear()
        self._timer.close()


def _time_of(message: ToSender) -> float:
    return math.inf if message.order is None else message.order.at
