"""The decisions of one client: the concurrency limit, the user slots of a closed loop, their backoff, and turns.

The load generator and the simulated clients send what it decides, so that a prediction is the run that it predicts.
"""

from __future__ import annotations

import math
from typing import Generic, TypeVar

from servetop.core.config import WorkloadConfig
from servetop.workload.client.backoff import Backoff
from servetop.workload.client.open_turns import OpenTurns
from servetop.workload.client.pauses import Pauses
from servetop.workload.client.user_slots import UserSlots
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_run import Due, StageArrivals

_Prompt = TypeVar("_Prompt")


class LoadClient(Generic[_Prompt]):
    """Decides whether a request may be sent; the caller sends it, and counts what is queued and in flight.

    A caller first admits or queues what `schedule` and `turns` say is due, then sends what is queued, then fills slots.
    """

    def __init__(self, workload: WorkloadConfig, *, skipped: SkippedRows | None = None, worker: int = 0) -> None:
        self.schedule: Schedule | None = None
        self.slots = UserSlots()
        self.turns: OpenTurns[_Prompt] = OpenTurns(skipped or SkippedRows())
        self._backoff = Backoff()
        users = self.turns if workload.conversational else self.slots
        self._pauses = Pauses(workload, worker=worker, use=users.think)

    def begin(self, plan: LoadPlan, *, arrivals: StageArrivals, now: float) -> Schedule:
        """Start a plan in place of the previous one, and return its schedule."""
        self.schedule = Schedule(plan, arrivals=arrivals, now=now)
        return self.schedule

    @property
    def closed(self) -> bool:
        """Whether the current stage is a closed loop."""
        return self.schedule is not None and self.schedule.stage is not None and self.schedule.stage.closed

    def has_room(self, *, in_flight: int, limit: int | None) -> bool:
        """Whether the concurrency limit allows another request, and the load is not paused.

        A request that becomes due is sent at once if there is room and none is queued; otherwise it is queued.
        """
        return (limit is None or in_flight < limit) and not (self.schedule is not None and self.schedule.paused)

    def follow_pauses(self) -> None:
        """Use the think times of the current stage."""
        if self.schedule is not None:
            self._pauses.follow(self.schedule)

    def take_slot(self, now: float, *, in_flight: int, limit: int | None) -> Due | None:
        """Take the request of a user slot that is free at `now`; None if there is none, or after a failure."""
        if self.schedule is None or self.schedule.paused or now < self._backoff.until:
            return None
        since = self.slots.free_since(now, in_flight=in_flight + self.turns.thinking, limit=limit)
        return None if since is None else self.schedule.take_slot(max(since, self._backoff.until))

    def freed(self, at: float) -> None:
        """A request whose conversation does not continue left its slot at `at`."""
        self.slots.freed(at, closed=self.closed)

    def ended(self, at: float, *, failed: bool) -> bool:
        """A request ended; return whether failures have just made a closed loop as slow as it gets."""
        return self._backoff.ended(at, failed=failed)

    def drained(self, now: float, *, unfinished: int) -> bool:
        """End a drain whose last request has ended; return whether it did. `unfinished`: queued and in flight."""
        schedule = self.schedule
        if schedule is None or schedule.draining_since is None or unfinished or self.turns.thinking:
            return False
        schedule.drained(now)
        return True

    def wake_at(self, now: float) -> float:
        """Run time at which more may be due if no request ends before; infinity if that is all."""
        if self.schedule is None:
            return math.inf
        slot_at = self.slots.usable_at(now, not_before=self._backoff.until) if self.closed else math.inf
        return min(self.schedule.wake_at(), slot_at, self.turns.wake_at)
