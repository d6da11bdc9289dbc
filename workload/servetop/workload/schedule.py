"""Which request is due when, over all stages of a plan, and how commands change it. Pure: time is an argument."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from servetop.core.events import StageChange
from servetop.core.tick import LoadGauges
from servetop.workload.arrivals.arrival_process import ArrivalProcess
from servetop.workload.plan import LoadPhase, LoadPlan
from servetop.workload.stage_run import Due, StageRun

MAX_SPARE = 256
"""Connections opened ahead of need, at most."""
_SPARE_SECONDS = 0.020


class Schedule:
    """Plays a plan's stages one after the other.

    `changes` collects the stages that began. After the last stage, and between stages of a plan that drains, it
    waits for `drained`.
    """

    def __init__(self, plan: LoadPlan, *, arrivals: Callable[[float], ArrivalProcess], now: float) -> None:
        self.plan = plan
        self.stage: StageRun | None = None
        self.latest_stage: StageRun | None = None
        """The stage in force, or after it the last one that was."""
        self.changes: list[StageChange] = []
        self.draining_since: float | None = None
        self.finished = False
        self.continues_conversations = True
        """Conversations go on: neither its time nor a command has cut off the stage that drains."""
        self._arrivals = arrivals
        self._following = list(plan.segments)
        self._starts_at = max(plan.begin, now)

    def due(self, now: float) -> list[Due]:
        """Every request of an open loop that has become due, in order; begins and ends stages on the way."""
        found: list[Due] = []
        while True:
            if self.stage is None:
                if self._starts_at > now:
                    return found
                self._begin_stage()
            elif (due := self.stage.next_due()) < (end := self.stage.end()) and due <= now:
                found.append(self.stage.issue())
            elif end <= now:
                self._end_stage(end)
            else:
                return found

    def _begin_stage(self) -> None:
        index, config = self._following.pop(0)
        began, self._starts_at = self._starts_at, math.inf
        self.continues_conversations = True
        self.stage = self.latest_stage = StageRun(index, config, began=began, arrivals=self._arrivals)
        self.changes.append(
            StageChange(
                at=began,
                index=index,
                label=config.label,
                request_rate=config.request_rate,
                max_concurrency=config.max_concurrency,
                max_num_seqs=config.max_num_seqs,
                repeat=config.repeat,
                warmup=config.warmup,
            )
        )

    def _end_stage(self, at: float) -> None:
        drains = self.plan.drain_at_stages or (self.stage is not None and self.stage.config.warmup)
        goes_on = self.plan.followed_by > 0 and not drains  # with the next part of the plan, which others hold back
        self.continues_conversations = goes_on or (self.stage is not None and self.stage.exhausted)
        self.stage = None
        if drains or not self._following:
            self.draining_since = at
        else:
            self._starts_at = at

    def take_slot(self, at: float) -> Due | None:
        """A request for a place that became free at `at`, if the stage is a closed loop and wants more."""
        return None if self.stage is None else self.stage.take_slot(at)

    def wake_at(self) -> float:
        """Run time at which `due` will have something to do next; inf when only a command or `drained` brings more."""
        return self._starts_at if self.stage is None else min(self.stage.next_due(), self.stage.end())

    @property
    def drain_deadline(self) -> float:
        """Run time after which what is still in flight is to be cancelled; inf while nothing drains."""
        return math.inf if self.draining_since is None else self.draining_since + self.plan.drain_timeout

    def turn_due(self, at: float) -> None:
        """A turn of a conversation is due at `at`: a drain that it falls into has its time from then on."""
        if self.draining_since is not None:
            self.draining_since = max(self.draining_since, at)

    def drained(self, at: float) -> None:
        """Nothing is in flight or held back any more: the next stage begins, or the plan is finished."""
        if self.draining_since is None:
            return
        self.draining_since = None
        if self._following:
            self._starts_at = at
        else:
            self.finished = True

    def next_stage(self, at: float) -> bool:
        """End the stage in force now; False when there is none, or none after it."""
        if self.stage is None or not self.stages_left:
            return False
        self._end_stage(at)
        return True

    @property
    def state(self) -> LoadPhase:
        """Of the sender that plays it."""
        if self.finished:
            return LoadPhase.FINISHED
        return LoadPhase.RUNNING if self.draining_since is None else LoadPhase.DRAINING

    @property
    def stages_left(self) -> int:
        """Number of stages that have not begun."""
        return len(self._following) + self.plan.followed_by

    def connections_wanted(self, in_flight: int) -> int:
        """How many idle connections will be of use soon: for 20 ms of an open loop, for all of a closed loop's start.

        At least one in an open loop, at most MAX_SPARE; none beyond the concurrency limit.
        """
        if self.stage is not None:
            rate, limit = self.stage.rate, self.stage.limit
            start = 0
        elif self._following:
            config = self._following[0][1]
            rate, limit = config.request_rate, config.max_concurrency
            start = min(limit or MAX_SPARE, config.num_prompts or MAX_SPARE)
        else:
            return 0
        wanted = start if math.isinf(rate) else math.ceil(rate * _SPARE_SECONDS)
        return max(0, min(wanted, MAX_SPARE, MAX_SPARE if limit is None else limit - in_flight))

    def gauges(self, counts: LoadGauges, *, at: float) -> LoadGauges:
        """Counts, with the load that is in force."""
        if self.stage is None:
            return counts
        return dataclasses.replace(
            counts, request_rate=self.stage.rate_now(at), holding=self.stage.held, paused=self.stage.paused
        )

    def stop(self, at: float) -> None:
        """No more requests and no more stages."""
        self._following = []
        self._starts_at = math.inf
        if self.stage is not None or self.draining_since is None:
            self._end_stage(at)
        self.continues_conversations = False
