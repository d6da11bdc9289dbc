"""Faults of the engine of a virtual run that no request fails of: lost KV blocks, and pauses of the whole engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

_LEAK_STEP = 0.1
"""Seconds between two times at which blocks are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvLeak:
    """KV blocks that an engine loses for good, as one that does not free the blocks of some requests does.

    Only free blocks are lost; if too few are free, others as they become free. The metrics count lost blocks as used.
    A request that needs more blocks than the usable ones waits for ever, and the requests behind it. ValueError for a
    time, a rate or a fraction that makes no sense.
    """

    start: float
    """Run time in seconds."""
    rate: float
    """Blocks per second."""
    floor: float
    """Fraction of all blocks that is never lost, above 0 and below 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.start < math.inf or not 0 < self.rate < math.inf or not 0 < self.floor < 1:
            raise ValueError(
                "a leak of KV blocks needs a start of 0 s or later, a rate above 0 blocks/s and a floor between 0 and 1"
                f", not {self.start} s, {self.rate} blocks/s and {self.floor}"
            )

    def lost_by(self, at: float, total: int) -> int:
        """Return how many of `total` blocks are lost at a run time, if enough of them are free."""
        most = total - math.ceil(self.floor * total)
        return int(min(self.rate * max(at - self.start, 0.0), most))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePause:
    """A period in which an engine computes, admits and sends nothing, as during a garbage collection.

    Requests still arrive, the iteration in progress ends as much later, and the metrics page stays as it was at the
    start. ValueError for a time that makes no sense.
    """

    start: float
    """Run time in seconds."""
    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= self.start < math.inf or not 0 < self.seconds < math.inf:
            raise ValueError(
                f"a pause needs a start of 0 s or later and a length above 0 s, not {self.start} s and {self.seconds} s"
            )

    @property
    def until(self) -> float:
        """Run time at which the engine continues."""
        return self.start + self.seconds


def check_pauses(pauses: tuple[EnginePause, ...]) -> None:
    """Raise ValueError for pauses that are not in order of time, or that overlap."""
    for before, after in itertools.pairwise(pauses):
        if after.start < before.until:
            raise ValueError(f"the pause at {after.start} s begins before that of {before.start} s has ended")


class FaultSchedule:
    """The faults of one engine in order of time; `next_at` is the time of the next one, infinity after the last."""

    def __init__(self, leak: KvLeak | None, pauses: tuple[EnginePause, ...], *, blocks: int) -> None:
        self._losses = iter(()) if leak is None else _losses(leak, blocks)
        self._pauses = iter(pauses)
        self._loss = next(self._losses, None)
        self._pause = next(self._pauses, None)
        self._find_next()

    def take(self) -> EnginePause | int:
        """Return the fault of time `next_at`, a pause or a number of lost blocks, and go on to the next one."""
        found: EnginePause | int
        if self._pause is not None and self._pause.start == self.next_at:
            found, self._pause = self._pause, next(self._pauses, None)
        else:
            assert self._loss is not None
            found, self._loss = self._loss[1], next(self._losses, None)
        self._find_next()
        return found

    def clear(self) -> None:
        """Drop all further faults."""
        self._pause = self._loss = None
        self._find_next()

    def _find_next(self) -> None:
        pause_at = math.inf if self._pause is None else self._pause.start
        self.next_at = pause_at if self._loss is None else min(pause_at, self._loss[0])


def _losses(leak: KvLeak, blocks: int) -> Iterator[tuple[float, int]]:
    """Yield the times at which blocks are lost, and how many."""
    lost, step, most = 0, 0, leak.lost_by(math.inf, blocks)
    while lost < most:
        step = max(step + 1, int((lost + 1) / (leak.rate * _LEAK_STEP)))
        at = leak.start + step * _LEAK_STEP
        found = leak.lost_by(at, blocks)
        if found > lost:
            yield at, found - lost
        lost = found
