"""One running stage: a pure state machine; time is an argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from servetop.core.config import StageConfig
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.arrivals.arrival_process import ArrivalProcess
from servetop.workload.arrivals.rate_curves import CurvedArrivals, RampCurve
from servetop.workload.stages.stage_draws import StageDraws

Arrivals = Callable[[float], ArrivalProcess]
"""Returns a new arrival process for a rate."""
StageArrivals = Callable[[StageDraws], Arrivals]
"""Returns the arrival processes of a stage."""


@dataclass(frozen=True, slots=True)
class Due:
    """One request of the schedule."""

    stage: int
    """Index of the stage in the run."""
    at: float
    """Run time at which it is due."""
    prompt: Prompt | None = None
    """The next turn of an open conversation; None: the next prompt of the workload."""


class StageRun:
    """Computes when the next request of a stage is due and when the stage ends.

    Holding a stage stops its duration and its ramp, not its load; pausing it stops its due times too. Setting a rate
    ends the ramp.
    """

    def __init__(self, index: int, config: StageConfig, *, started_at: float, arrivals: Arrivals) -> None:
        self.index = index
        self.config = config
        self.started_at = started_at
        self.rate = config.request_rate
        self.limit = config.max_concurrency
        self._arrivals = arrivals
        self._ends = math.inf if config.duration is None else started_at + config.duration
        self._left = math.inf if config.num_prompts is None else config.num_prompts
        self._last_due = started_at
        self._any_due = False
        self._held = False
        self._paused_since: float | None = None
        self._stopped_since: float | None = None
        self._ramp = _ramp(config)
        self._ramp_left: RampCurve | None = None
        self._restart_arrivals(started_at)

    def _restart_arrivals(self, base: float) -> None:
        self._base = base
        self._offsets: Iterator[float] = self._process().due_times()
        self._next = base + next(self._offsets)

    def _process(self) -> ArrivalProcess:
        process = self._arrivals(self.rate) if self._ramp is None else CurvedArrivals(self._arrivals(1.0), self._ramp)
        self._curve = process.curve if isinstance(process, CurvedArrivals) else None
        return process

    def rate_now(self, at: float) -> float:
        """Return the requests per second at a time: `rate`, or the value of a ramp or a sinusoid."""
        at = at if self._paused_since is None else self._paused_since
        return self.rate if self._curve is None else self._curve.rate_at(at - self._base)

    @property
    def closed(self) -> bool:
        """Whether this is a closed loop: a request is due whenever a user slot is free."""
        return math.isinf(self.rate) and self.limit is not None

    @property
    def held(self) -> bool:
        """Whether the stage is held."""
        return self._held

    @property
    def paused(self) -> bool:
        """Whether the stage is paused: no request is due."""
        return self._paused_since is not None

    @property
    def exhausted(self) -> bool:
        """Whether all requests of `num_prompts` have become due."""
        return self._left <= 0 and not self._held

    def next_due(self) -> float:
        """Run time of the next request of an open loop; inf when there is none."""
        return math.inf if self.paused or self.closed or self.exhausted else self._next

    def end(self) -> float:
        """Run time at which the stage ends; inf while it is held or paused."""
        if self._stopped_since is not None:
            return math.inf
        return min(self._last_due, self._ends) if self.exhausted else self._ends

    def issue(self) -> Due:
        """Take the next request of an open loop."""
        due = self._next
        self._next = self._base + next(self._offsets)
        return self._counted(due)

    def take_slot(self, at: float) -> Due | None:
        """Take the request of a user slot that became free at `at`; None when the stage has none left."""
        due = max(at, self.started_at)
        if not self.closed or self.paused or self.exhausted or due >= self.end():
            return None
        return self._counted(due)

    def without_load(self) -> str:
        """Return why no request was due, and what to do, if the stage ends before its first arrival; else empty."""
        if self._any_due or self.closed or self.paused or self.exhausted or self.config.duration is None:
            return ""
        first = self._next - self._base
        rate = "" if math.isinf(self.rate) or self._curve is not None else f" at {self.rate:g} req/s"
        due = "there is none" if math.isinf(first) else f"the first one is due after {first:.3g} s"
        return f"no request was due within {self.config.duration:g} s{rate}: {due}; set a longer --duration"

    def _counted(self, due: float) -> Due:
        self._last_due, self._any_due = due, True
        if not self._held:
            self._left -= 1
        return Due(self.index, due)

    def set_rate(self, rate: float, at: float) -> None:
        """Restart arrivals at another rate from `at` on; the remaining duration is unchanged."""
        self.rate = rate
        self._ramp = self._ramp_left = None
        self._restart_arrivals(at if self._paused_since is None else self._paused_since)

    def hold(self, at: float) -> None:
        """Stop the duration and the ramp, not the load; requests sent meanwhile do not count towards `num_prompts`."""
        self._held = True
        self._stop_duration(at)
        if self._ramp is not None:
            left = self._ramp.rest(at - self._base)
            self.set_rate(self.rate_now(at), at)
            self._ramp_left = left

    def continue_(self, at: float) -> None:
        """End `hold`."""
        self._held = False
        self._continue_duration(at)
        if self._ramp_left is not None:
            self._ramp, self._ramp_left = self._ramp_left, None
            self.rate = self._ramp.end
            self._restart_arrivals(at if self._paused_since is None else self._paused_since)

    def pause(self, at: float) -> None:
        """Stop both the duration and the load."""
        self._paused_since = at
        self._stop_duration(at)

    def resume(self, at: float) -> None:
        """End `pause`: due times are shifted by its length."""
        if self._paused_since is not None:
            self._base += at - self._paused_since
            self._next += at - self._paused_since
            self._paused_since = None
        self._continue_duration(at)

    def _stop_duration(self, at: float) -> None:
        if self._stopped_since is None:
            self._stopped_since = at

    def _continue_duration(self, at: float) -> None:
        if self._stopped_since is not None and not self._held and not self.paused:
            self._ends += at - self._stopped_since
            self._stopped_since = None


def _ramp(config: StageConfig) -> RampCurve | None:
    """Return the ramp over the duration of the stage, or over its number of requests."""
    if config.ramp_from is None:
        return None
    start, end, exponential = config.ramp_from, config.request_rate, config.ramp_strategy == "exponential"
    if config.duration is not None:
        return RampCurve(start=start, end=end, seconds=config.duration, exponential=exponential)
    return RampCurve.of_length(start, end, requests=config.num_prompts or 1, exponential=exponential)
