"""Scrapes an engine periodically, independent of how fast it responds."""

from __future__ import annotations

import asyncio
import math
from typing import Protocol

from servetop.core.clock import Clock
from servetop.core.events import EngineSample
from servetop.core.tick import TICK_SECONDS


class Sampled(Protocol):
    """A source of engine samples, such as an `EngineHandle`."""

    async def sample(self) -> EngineSample | None:
        """Scrape once, within the scrape timeout; None if nothing could be read."""
        ...


class EngineSampler:
    """Starts one scrape at a time, at absolute multiples of `period`, or `offset` later; missed ones are skipped."""

    def __init__(self, handle: Sampled, clock: Clock, *, period: float = TICK_SECONDS, offset: float = 0.0) -> None:
        self._handle = handle
        self._clock = clock
        self._period = period
        self._offset = offset
        self._newest: EngineSample | None = None
        self._failed = False
        self._fresh: list[EngineSample] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def newest(self) -> EngineSample | None:
        """The sample of the last scrape; None before the first one and if the last one failed."""
        return None if self._failed else self._newest

    def age(self) -> float:
        """Return the seconds since the newest successful scrape; inf if there is none."""
        return math.inf if self._newest is None else self._clock.now() - self._newest.scrape_end

    def drain(self) -> list[EngineSample]:
        """Return all samples since the last call, oldest first."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def start(self) -> None:
        """Start, with an immediate scrape."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop, and cancel a scrape in progress."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            sample = await self._handle.sample()
            self._failed = sample is None
            if sample is not None and sample is not self._newest:  # the same object: nothing new
                self._newest = sample
                self._fresh.append(sample)
            periods = math.floor((self._clock.now() - self._offset) / self._period) + 1
            await self._clock.sleep_until(periods * self._period + self._offset)
