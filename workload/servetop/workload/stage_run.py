"""One stage while it plays: a pure state machine; every instant is an argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from servetop.core.config import StageConfig
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.arrivals.arrival_process import ArrivalProcess
from servetop.workload.arrivals.rate_curves import CurvedArrivals, RampCurve

Arrivals = Callable[[float], ArrivalProcess]
"""The arrival process for a rate; a fresh one at each call."""


@dataclass(frozen=True, slots=True)
class Due:
    """One request that the schedule wants."""

    stage: int
    """Index of the stage in the run."""
    at: float
    """Run time."""
    prompt: Prompt | None = None
    """The next turn of a conversation under way; None: whatever the workload asks next."""


class StageRun:
    """Knows when a stage's next request is due and when the stage is over.

    The stage's own time stands still while it is held or paused; due times stand still while it is paused only.
    Holding a stage holds its ramp where it is; setting a rate ends the ramp.
    """

    def __init__(self, index: int, config: StageConfig, *, began: float, arrivals: Arrivals) -> None:
        self.index = index
        self.config = config
        self.began = began
        self.rate = config.request_rate
        self.limit = config.max_concurrency
        self._arrivals = arrivals
        self._ends = math.inf if config.duration is None else began + config.duration
        self._left = math.inf if config.num_prompts is None else config.num_prompts
        self._last_due = began
        self._held = False
        self._paused_since: float | None = None
        self._still_since: float | None = None
        self._ramp = _ramp(config)
        self._ramp_left: RampCurve | None = None
        self._restart_arrivals(began)

    def _restart_arrivals(self, base: float) -> None:
        self._base = base
        self._offsets: Iterator[float] = self._process().due_times()
        self._next = base + next(self._offsets)

    def _process(self) -> ArrivalProcess:
        process = self._arrivals(self.rate) if self._ramp is None else CurvedArrivals(self._arrivals(1.0), self._ramp)
        self._curve = process.curve if isinstance(process, CurvedArrivals) else None
        return process

    def rate_now(self, at: float) -> float:
        """Requests per second wanted at an instant: `rate`, or where a ramp or a swing has got to."""
        at = at if self._paused_since is None else self._paused_since
        return self.rate if self._curve is None else self._curve.rate_at(at - self._base)

    @property
    def closed(self) -> bool:
        """A closed loop: a request is due whenever the concurrency limit has room."""
        return math.isinf(self.rate) and self.limit is not None

    @property
    def held(self) -> bool:
        """The stage goes on until it is told to continue."""
        return self._held

    @property
    def paused(self) -> bool:
        """Nothing is due."""
        return self._paused_since is not None

    @property
    def exhausted(self) -> bool:
        """As many requests as were wanted have become due."""
        return self._left <= 0 and not self._held

    def next_due(self) -> float:
        """Run time of the next request of an open loop; inf when there is none."""
        return math.inf if self.paused or self.closed or self.exhausted else self._next

    def end(self) -> float:
        """Run time at which the stage is over; inf while its time stands still."""
        if self._still_since is not None:
            return math.inf
        return min(self._last_due, self._ends) if self.exhausted else self._ends

    def issue(self) -> Due:
        """Take the next request of an open loop."""
        due = self._next
        self._next = self._base + next(self._offsets)
        return self._counted(due)

    def take_slot(self, at: float) -> Due | None:
        """Take a request of a closed loop for a place that became free at `at`; None when the stage wants none."""
        wanted = max(at, self.began)
        if not self.closed or self.paused or self.exhausted or wanted >= self.end():
            return None
        return self._counted(wanted)

    def _counted(self, due: float) -> Due:
        self._last_due = due
        if not self._held:
            self._left -= 1
        return Due(self.index, due)

    def set_rate(self, rate: float, at: float) -> None:
        """From `at` on, fresh arrivals at another rate; the stage's remaining time is unchanged."""
        self.rate = rate
        self._ramp = self._ramp_left = None
        self._restart_arrivals(at if self._paused_since is None else self._paused_since)

    def hold(self, at: float) -> None:
        """Stop the stage's time, not its load; requests sent meanwhile do not count towards its number."""
        self._held = True
        self._stand_still(at)
        if self._ramp is not None:
            left = self._ramp.rest(at - self._base)
            self.set_rate(self.rate_now(at), at)
            self._ramp_left = left

    def continue_(self, at: float) -> None:
        """Undo `hold`."""
        self._held = False
        self._move_again(at)
        if self._ramp_left is not None:
            self._ramp, self._ramp_left = self._ramp_left, None
            self.rate = self._ramp.end
            self._restart_arrivals(at if self._paused_since is None else self._paused_since)

    def pause(self, at: float) -> None:
        """Stop both the stage's time and its load."""
        self._paused_since = at
        self._stand_still(at)

    def resume(self, at: float) -> None:
        """Undo `pause`: what would have been due since is due as much later."""
        if self._paused_since is not None:
            self._base += at - self._paused_since
            self._next += at - self._paused_since
            self._paused_since = None
        self._move_again(at)

    def _stand_still(self, at: float) -> None:
        if self._still_since is None:
            self._still_since = at

    def _move_again(self, at: float) -> None:
        if self._still_since is not None and not self._held and not self.paused:
            self._ends += at - self._still_since
            self._still_since = None


def _ramp(config: StageConfig) -> RampCurve | None:
    """Over the stage's duration, else over its number of requests."""
    if config.ramp_from is None:
        return None
    start, end, exponential = config.ramp_from, config.request_rate, config.ramp_strategy == "exponential"
    if config.duration is not None:
        return RampCurve(start=start, end=end, seconds=config.duration, exponential=exponential)
    return RampCurve.of_length(start, end, requests=config.num_prompts or 1, exponential=exponential)
