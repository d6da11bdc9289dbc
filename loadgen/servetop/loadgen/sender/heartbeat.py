"""The sender's periodic timers: a heartbeat whose lateness is the event-loop lag, and the ends of ticks."""

from __future__ import annotations

import math
from collections.abc import Callable

from servetop.core.clock import MonotonicClock
from servetop.core.tick import TICK_SECONDS
from servetop.loadgen.pacing import deadline_timer
from servetop.loadgen.sender.tick_builder import BEAT_SECONDS


class Heartbeat:
    """Calls `on_beat` every 20 ms with its lateness (seconds), and `on_tick` with the index of each tick that ended.

    If the loop was blocked, missed ticks are reported one after the other; missed beats are skipped.
    """

    def __init__(
        self, clock: MonotonicClock, *, on_beat: Callable[[float], None], on_tick: Callable[[int], None]
    ) -> None:
        self._clock = clock
        self._on_beat = on_beat
        self._on_tick = on_tick
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
        """Stop both timers."""
        self._beats.close()
        self._ticks.close()
