"""The user slots of a closed loop.

`UserSlots` enforces max_concurrency: a request needs a free slot, and a user may pause between a response and the next
request (think time).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from servetop.core.errors import UsageError
from servetop.core.units import parse_seconds
from servetop.workload.distribution_spec import KnownDistributions, SpecParameter, parse_distribution

THINK_TIMES: KnownDistributions = {
    "constant": {"mean": SpecParameter(1.0, high=86_400)},
    "exponential": {"mean": SpecParameter(1.0, high=86_400)},
}


def parse_think_time(text: str, *, seed: Sequence[int]) -> Iterator[float] | None:
    """Pauses in seconds from `2`, `500ms`, or `exponential:mean=2`; None for the empty text."""
    if not text:
        return None
    if text[0].isdigit() or text[0] == ".":
        return itertools.repeat(_seconds(text))
    spec = parse_distribution(text, THINK_TIMES, option="--think-time")
    return itertools.repeat(spec["mean"]) if spec.name == "constant" else _exponential(spec["mean"], seed)


def _seconds(text: str) -> float:
    try:
        return parse_seconds(text)
    except UsageError as wrong:
        raise UsageError(f"--think-time: {wrong}, or exponential:mean=2") from None


def _exponential(mean: float, seed: Sequence[int]) -> Iterator[float]:
    generator = np.random.default_rng((*seed, 0x7411))
    while True:
        yield from generator.exponential(mean, 64).tolist()


class UserSlots:
    """Free user slots of a closed loop, and since when they are free; users keep their slots while they think."""

    def __init__(self, pauses: Iterator[float] | None = None) -> None:
        self._pauses = pauses
        self._free_since: float | None = None
        """When the last slot became free that is not in use again; None if there is none."""
        self._thinking: list[float] = []

    def think(self, pauses: Iterator[float] | None) -> None:
        """Pause for these times from now on; None: not at all."""
        self._pauses = pauses

    @property
    def thinking(self) -> int:
        """Number of users who think, or have thought and were not given a request yet."""
        return len(self._thinking)

    def opened(self) -> None:
        """A command may have added slots: treat all free slots as new."""
        self._free_since = None

    def freed(self, at: float, *, closed: bool) -> None:
        """A response has ended at `at`; in a closed loop its user starts to think."""
        if self._pauses is None:
            self._free_since = at
        elif closed:
            heapq.heappush(self._thinking, at + next(self._pauses))
        else:
            self._thinking.clear()

    def free_since(self, now: float, *, in_flight: int, limit: int | None) -> float | None:
        """Return when a slot that is free at `now` became free; None when none is. Users who have thought go first.

        Unused slots, such as all slots at the start, count as free from the time of the call: a closed loop does not
        promise a time at which all of them are in use.
        """
        if limit is not None and in_flight >= limit:
            return None
        if self._thinking and self._thinking[0] <= now:
            return heapq.heappop(self._thinking)
        if limit is not None and in_flight + len(self._thinking) >= limit:
            return None
        since, self._free_since = self._free_since, None
        return now if since is None else since

    def usable_at(self, now: float, *, not_before: float) -> float:
        """Run time at which the next slot can be used: `not_before` if that is later, else the end of a think time."""
        if not_before > now:
            return not_before
        return self._thinking[0] if self._thinking else math.inf
