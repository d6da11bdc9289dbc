"""The sender's own times: a heartbeat that shows how late the event loop is, and the ends of ticks."""

from __future__ import annotations

import math
from collections.abc import Callable

from servetop.core.clock import MonotonicClock
from servetop.core.tick import TICK_SECONDS
from servetop.loadgen.sender.pacing import deadline_timer
from servetop.loadgen.sender.tick_builder import BEAT_SECONDS


class Heartbeat:
    """Calls `beat` with its lateness (seconds) every 20 ms, and `tick` with the number of each tick that has ended.

    Ticks that the loop slept through are told one after the other, beats that it did are left out.
    """

    def __init__(self, clock: MonotonicClock, *, beat: Callable[[float], None], tick: Callable[[int], None]) -> None:
        self._clock = clock
        self._on_beat = beat
        self._on_tick = tick
        now = clock.now()
        self._index = max(0, math.floor(now / TICK_SECONDS))
        self._beat_at = now + BEAT_SECONDS
        self._beats = deadline_timer(clock, self._beat)
        self._ticks = deadline_timer(clock, self._tick)
        self._beats.arm(self._beat_at)
        self._ticks.arm((self._index + 1) * TICK_SECONDS)

    def _beat(self) -> None:
        late = self._clock.now() - self._beat_at
        self._beat_at += BEAT_SECONDS * (1 + late // BEAT_SECONDS)
        self._beats.arm(self._beat_at)
        self._on_beat(late)

    def _tick(self) -> None:
        now = self._clock.now()
        while (end := (self._index + 1) * TICK_SECONDS) <= now:
            self._on_tick(self._index)
            self._index += 1
        self._ticks.arm(end)

    def close(self) -> None:
        """Call no more."""
        self._beats.close()
        self._ticks.close()
