"""The schedule of a plan: when each request is due over all stages. Pure: time is an argument."""

from __future__ import annotations

import dataclasses
import math

from servetop.core.events import StageChange
from servetop.core.interfaces.stage_row import planned_row
from servetop.core.tick import LoadGauges
from servetop.workload.stages.plan import LoadPhase, LoadPlan
from servetop.workload.stages.stage_run import Due, StageArrivals, StageRun

MAX_SPARE = 256
"""Most connections opened ahead of need."""
_SPARE_SECONDS = 0.020


class Schedule:
    """Runs the stages of a plan one after the other.

    `changes` collects the stages that started. After the last stage, and between the stages of a plan that drains, it
    waits for `drained`.
    """

    def __init__(self, plan: LoadPlan, *, arrivals: StageArrivals, now: float) -> None:
        self.plan = plan
        self.stage: StageRun | None = None
        self.latest_stage: StageRun | None = None
        """The current stage, or the last one after it ended."""
        self.changes: list[StageChange] = []
        self.warnings: list[str] = []
        """A warning for each stage that ended before its first request was due."""
        self.draining_since: float | None = None
        self.finished = False
        self.continues_conversations = True
        """Conversations continue: neither its duration nor a command has cut off the draining stage."""
        self._arrivals = arrivals
        self._following = list(plan.segments)
        self._starts_at = max(plan.begin, now)

    def due(self, now: float) -> list[Due]:
        """Return all requests of open loops due by `now`, in order; starts and ends stages as their times pass."""
        found: list[Due] = []
        while True:
            if self.stage is None:
                if self._starts_at > now:
                    return found
                self._begin_stage()
            elif (due := self.stage.next_due()) < (end := self.stage.end()) and due <= now:
                found.append(self.stage.issue())
            elif end <= now:
                self.warnings += filter(None, [self.stage.without_load()])
                self._end_stage(end)
            else:
                return found

    def _begin_stage(self) -> None:
        index, config = self._following.pop(0)
        started_at, self._starts_at = self._starts_at, math.inf
        self.continues_conversations = True
        draws = self.plan.draws_of(index)
        self.stage = self.latest_stage = StageRun(index, config, started_at=started_at, arrivals=self._arrivals(draws))
        self.changes.append(dataclasses.replace(planned_row(config, at=started_at, index=index), draws=draws.key))

    def _end_stage(self, at: float) -> None:
        drains = self.plan.drain_at_stages or (self.stage is not None and self.stage.config.warmup)
        more_plans = self.plan.followed_by > 0 and not drains
        self.continues_conversations = more_plans or (self.stage is not None and self.stage.exhausted)
        self.stage = None
        if drains or not self._following:
            self.draining_since = at
        else:
            self._starts_at = at

    def take_slot(self, at: float) -> Due | None:
        """Return the request of a user slot that became free at `at`; None unless a closed loop has requests left."""
        return None if self.stage is None else self.stage.take_slot(at)

    def wake_at(self) -> float:
        """Run time at which `due` has to be called next; inf when only a command or `drained` can change anything."""
        return self._starts_at if self.stage is None else min(self.stage.next_due(), self.stage.end())

    @property
    def drain_deadline(self) -> float:
        """Run time after which requests in flight are cancelled; inf while not draining."""
        return math.inf if self.draining_since is None else self.draining_since + self.plan.drain_timeout

    def turn_due(self, at: float) -> None:
        """A turn of a conversation is due at `at`: restarts the timeout of a drain."""
        if self.draining_since is not None:
            self.draining_since = max(self.draining_since, at)

    def drained(self, at: float) -> None:
        """No request is in flight or queued any more: starts the next stage, or finishes the plan."""
        if self.draining_since is None:
            return
        self.draining_since = None
        if self._following:
            self._starts_at = at
        else:
            self.finished = True

    def next_stage(self, at: float) -> bool:
        """End the current stage; False when there is none, or none after it."""
        if self.stage is None or not self.stages_left:
            return False
        self._end_stage(at)
        return True

    @property
    def paused(self) -> bool:
        """Whether the stage in force is paused."""
        return self.stage is not None and self.stage.paused

    @property
    def state(self) -> LoadPhase:
        """Progress of the plan."""
        if self.finished:
            return LoadPhase.FINISHED
        return LoadPhase.RUNNING if self.draining_since is None else LoadPhase.DRAINING

    @property
    def prompts_for(self) -> int | None:
        """Index of the stage whose prompts are needed next; None after the last one."""
        if self.stage is not None:
            return self.stage.index
        return self._following[0][0] if self._following else None

    @property
    def stages_left(self) -> int:
        """Number of stages that have not started."""
        return len(self._following) + self.plan.followed_by

    def connections_wanted(self, in_flight: int) -> int:
        """Idle connections needed soon: those of the next 20 ms of an open loop, or of the start of a closed loop.

        At least one in an open loop; at most MAX_SPARE, and none beyond the concurrency limit.
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
        """Return the counts, with the rate and the state of the current stage."""
        if self.stage is None:
            return counts
        return dataclasses.replace(
            counts, request_rate=self.stage.rate_now(at), holding=self.stage.held, paused=self.stage.paused
        )

    def stop(self, at: float) -> None:
        """End the current stage and drop all others."""
        self._following = []
        self._starts_at = math.inf
        if self.stage is not None or self.draining_since is None:
            self._end_stage(at)
        self.continues_conversations = False
