"""The only module that reads time or waits for it.

Run time is a float: seconds since the run's origin, a value of `time.perf_counter_ns` (CLOCK_MONOTONIC on
Linux, comparable across the processes of one machine). Wall-clock time is read once per run, as an anchor.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Reads run time (seconds since the run's origin) and waits for an instant."""

    def now(self) -> float:
        """Return the seconds since the origin."""
        ...

    async def sleep_until(self, at: float) -> None:
        """Return at `at`, or at once if it has passed; never early."""
        ...


@dataclass(frozen=True, slots=True)
class ClockAnchor:
    """The origin of a run's time, and the wall time at that instant: what another process needs to share it."""

    origin_ns: int
    """`perf_counter_ns` at second 0 of the run."""
    wall_epoch_s: float
    """Unix time at second 0, read once."""

    @classmethod
    def take(cls) -> ClockAnchor:
        """Anchor a new run at this instant."""
        return cls(origin_ns=time.perf_counter_ns(), wall_epoch_s=time.time())


_AT_ONCE_NS = 20_000


class MonotonicClock:
    """The real clock of a run."""

    def __init__(self, origin_ns: int | None = None) -> None:
        self.origin_ns = time.perf_counter_ns() if origin_ns is None else origin_ns

    def now(self) -> float:
        """Return the seconds since the origin, to the nanosecond."""
        return (time.perf_counter_ns() - self.origin_ns) * 1e-9

    def origin_epoch_ns(self) -> int:
        """Unix time of the origin in nanoseconds, by the wall clock as it is set now.

        The two clocks are read again if the process was interrupted between the reads, which would be the error.
        """
        for _ in range(3):
            before, wall, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
            if after - before < _AT_ONCE_NS:
                break
        return wall - (before + after) // 2 + self.origin_ns

    async def sleep_until(self, at: float) -> None:
        """Wait on the event loop; its timers have millisecond resolution, so the wake-up may be about 1 ms late."""
        while (left := at - self.now()) > 0:
            await asyncio.sleep(left)


class ManualClock:
    """A clock that a test advances; sleepers wake in the order of their deadlines."""

    def __init__(self, at: float = 0.0) -> None:
        self._now = at
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        """Return the instant set last."""
        return self._now

    async def sleep_until(self, at: float) -> None:
        """Wait until `advance_to` reaches `at`."""
        if at <= self._now:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (at, next(self._order), future))
        await future

    def advance_to(self, at: float) -> None:
        """Move to `at` (never backwards) and wake the sleepers that are due."""
        self._now = max(self._now, at)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)


def wall_clock() -> float:
    """Unix time in seconds, for file names and for the age of a recording; never for measuring."""
    return time.time()


def cpu_seconds() -> float:
    """CPU time that this process has used so far, user and system, in seconds."""
    return time.process_time()
