"""Scrapes an engine periodically, independent of how fast it responds."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Protocol

from servetop.core.clock import Clock
from servetop.core.events import EngineSample
from servetop.core.tick import TICK_SECONDS
from servetop.engines.metrics.scrape_period import RECENT, scrape_period


class Sampled(Protocol):
    """A source of engine samples, such as an `EngineHandle`."""

    async def sample(self) -> EngineSample | None:
        """Scrape once, within the scrape timeout; None if nothing could be read."""
        ...


class EngineSampler:
    """Starts one scrape at a time, at absolute multiples of `period`, or `offset` later; missed ones are skipped.

    A `sparing` one scrapes less often while the page takes long (`scrape_period`): multiples then count from the scrape
    before the change.
    """

    def __init__(
        self,
        handle: Sampled,
        clock: Clock,
        *,
        period: float = TICK_SECONDS,
        offset: float = 0.0,
        sparing: bool = False,
    ) -> None:
        self._handle = handle
        self._clock = clock
        self._period = period
        self._offset = offset
        self._sparing = sparing
        self._times: deque[float] = deque(maxlen=RECENT)
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
        due, period, offset = self._offset, self._period, self._offset
        while True:
            sample = await self._handle.sample()
            self._failed = sample is None
            if sample is not None and sample is not self._newest:  # the same object: nothing new
                self._newest = sample
                self._fresh.append(sample)
                self._times.append(sample.scrape_end - sample.scrape_start)
            if (wanted := self._wanted_period()) != period:
                period, offset = wanted, due
            due = (math.floor((self._clock.now() - offset) / period) + 1) * period + offset
            await self._clock.sleep_until(due)

    def _wanted_period(self) -> float:
        """Return the seconds to the next scrape; a failed one is soon repeated."""
        if self._failed or not self._sparing:
            return self._period
        return scrape_period(self._times, shortest=self._period)
