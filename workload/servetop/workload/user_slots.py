"""The places of a closed loop: each is one user, who may think between an answer and the next question."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator

import numpy as np

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.units import parse_seconds
from servetop.workload.distribution_spec import KnownDistributions, SpecParameter, parse_distribution

THINK_TIMES: KnownDistributions = {
    "constant": {"mean": SpecParameter(1.0, high=86_400)},
    "exponential": {"mean": SpecParameter(1.0, high=86_400)},
}


def parse_think_time(text: str, *, seed: int) -> Iterator[float] | None:
    """Pauses in seconds from `2`, `500ms`, or `exponential:mean=2`; None for the empty text: no thinking."""
    if not text:
        return None
    if text[0].isdigit() or text[0] == ".":
        return itertools.repeat(_seconds(text))
    law = parse_distribution(text, THINK_TIMES, option="--think-time")
    return itertools.repeat(law["mean"]) if law.name == "constant" else _exponential(law["mean"], seed)


def _seconds(text: str) -> float:
    try:
        return parse_seconds(text)
    except UsageError as wrong:
        raise UsageError(f"--think-time: {wrong}, or exponential:mean=2") from None


def _exponential(mean: float, seed: int) -> Iterator[float]:
    generator = np.random.default_rng((seed, 0x7411))
    while True:
        yield from generator.exponential(mean, 64).tolist()


class UserSlots:
    """Which places of a closed loop are free, and since when; thinking users keep theirs."""

    def __init__(self, pauses: Iterator[float] | None) -> None:
        self._pauses = pauses
        self._free_since: float | None = None
        """When an answer ended whose place nobody has taken since."""
        self._thinking: list[float] = []

    @classmethod
    def of(cls, workload: WorkloadConfig, *, seed: int) -> UserSlots:
        """Those of one sender; in a conversation the pause is before its next turn, not before the next user."""
        return cls(None if workload.conversational else parse_think_time(workload.think_time, seed=seed))

    @property
    def thinking(self) -> int:
        """Users who think and have not been asked yet whether they have finished."""
        return len(self._thinking)

    def opened(self) -> None:
        """A command may have made room: places that were free before are as new as those."""
        self._free_since = None

    def freed(self, at: float, *, closed: bool) -> None:
        """An answer has ended; in a closed loop its user thinks now, where users do."""
        if self._pauses is None:
            self._free_since = at
        elif closed:
            heapq.heappush(self._thinking, at + next(self._pauses))
        else:
            self._thinking.clear()

    def free_since(self, now: float, *, in_flight: int, limit: int | None) -> float | None:
        """When a place that is free at `now` became so; None when none is. A user who has thought goes first.

        Places that nobody has used, as all are at the start, become free one after the other, as they are asked for:
        a closed loop promises no instant at which they all are used.
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
        """Run time at which a place can be used that cannot be used now: the next user has thought enough."""
        if not_before > now:
            return not_before
        return self._thinking[0] if self._thinking else math.inf
