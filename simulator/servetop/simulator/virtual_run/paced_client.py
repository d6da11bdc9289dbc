"""The client of a virtual run: sends a plan as the load generator does, on an event loop whose work takes time."""

from __future__ import annotations

import functools
import math
import random
from collections import deque

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.tick import LoadGauges
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.predict.client_requests import ClientRequests
from servetop.simulator.virtual_run.client_tick_fold import ClientTickFold
from servetop.simulator.virtual_run.sent_request import SentRequest
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts
from servetop.workload.build import arrivals_of
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_draws import Stream
from servetop.workload.stages.stage_run import Due
from servetop.workload.user_slots import UserSlots, parse_think_time

_RETRY_SECONDS = 1.0
"""Pause of a closed loop after a failed request."""
_JITTER_SECONDS = 60e-6
"""Mean lateness of a heartbeat on an idle machine."""


class PacedClient:
    """One sender. Its work is done first come, first served, so a busy loop sends late and its heartbeats lag."""

    def __init__(
        self,
        plan: LoadPlan,
        workload: WorkloadConfig,
        spec: SimSpec,
        *,
        seed: int,
        costs: ClientCosts,
        whole_prompts: bool = False,
    ) -> None:
        if workload.conversational or workload.n > 1 or workload.cancel_fraction:
            raise UsageError("a virtual run has single requests with one completion that the client does not cancel")
        self.ticks = ClientTickFold()
        self.schedule = Schedule(plan, arrivals=arrivals_of(workload), now=0.0)
        self._workload = workload
        self._open = functools.partial(ClientRequests, workload, spec, whole_prompts=whole_prompts)
        self._requests: ClientRequests | None = None
        self._stream: Stream | None = None
        self._slots = UserSlots()
        self._costs = costs
        self._jitter = random.Random(seed)
        self._queued: deque[Due] = deque()
        self._leaving: deque[SentRequest] = deque()
        self._sent = 0
        self._in_flight = 0
        self._wake_at = plan.begin
        self._not_before = 0.0
        self._busy_until = 0.0
        self._busy_seconds = 0.0
        self._reported_seconds = 0.0

    def wake_at(self) -> float:
        """Time of the next call of `advance`; infinity if it depends on the engine."""
        return min(self._wake_at, self._leaving[0].sent if self._leaving else math.inf)

    def advance(self, now: float) -> list[SentRequest]:
        """Start what is due, and return the requests that leave the client at `now`."""
        self._start_due(now)
        leaving = []
        while self._leaving and self._leaving[0].sent <= now:
            request = self._leaving.popleft()
            leaving.append(request)
            if not request.limited:
                self.ticks.due()
            self.ticks.sent(request)
        return leaving

    def ended(self, at: float, *, failed: bool = False) -> None:
        """Free the slot of a request that ended at `at`; a closed loop pauses after a failure."""
        self._in_flight -= 1
        if failed:
            self._not_before = at + _RETRY_SECONDS
        self._slots.freed(at, closed=self._closed)
        self._start_due(at)

    def chunks(self, count: int, at: float) -> None:
        """Read tokens that arrived at `at`."""
        self._work(self._costs.per_chunk * count, at)
        self.ticks.chunks(count)

    def beat(self, at: float) -> None:
        """Record the lateness of a heartbeat that is due at `at`."""
        late = max(0.0, self._busy_until - at) + self._jitter.expovariate(1 / _JITTER_SECONDS)
        self._work(self._costs.per_beat, at)
        self.ticks.beat(late)

    def gauges(self, at: float, *, stage: int) -> LoadGauges:
        """Return the state of the load at the end of a tick."""
        latest = self.schedule.latest_stage
        counts = LoadGauges(
            stage=stage,
            max_concurrency=None if latest is None else latest.limit,
            in_flight=self._in_flight - len(self._leaving),
            queued=len(self._queued),
        )
        return self.schedule.gauges(counts, at=at)

    def take_cpu_seconds(self, at: float) -> float:
        """Return the CPU time used since the last call."""
        done = self._busy_seconds - max(0.0, self._busy_until - at)
        before, self._reported_seconds = self._reported_seconds, done
        return max(0.0, done - before)

    def cancel_unsent(self) -> None:
        """Drop the requests that wait for the concurrency limit or for the event loop."""
        self._in_flight -= len(self._leaving)
        self._leaving.clear()
        self._queued.clear()

    @property
    def _closed(self) -> bool:
        return self.schedule.stage is not None and self.schedule.stage.closed

    def _limit(self) -> int | None:
        latest = self.schedule.latest_stage
        return None if latest is None else latest.limit

    def _has_room(self) -> bool:
        limit = self._limit()
        return limit is None or self._in_flight < limit

    def _start_due(self, now: float) -> None:
        for due in self.schedule.due(now):
            if self._queued or not self._has_room():
                self.ticks.due()
                self._queued.append(due)
            else:
                self._start(due, now)
        self._fill_slots(now)
        if self.schedule.draining_since is not None and not self._in_flight and not self._queued:
            self.schedule.drained(now)
        slot_at = self._slots.usable_at(now, not_before=self._not_before) if self._closed else math.inf
        self._wake_at = min(self.schedule.wake_at(), slot_at)

    def _fill_slots(self, now: float) -> None:
        while self._queued and self._has_room():
            self._start(self._queued.popleft(), now, limited=True)
        while now >= self._not_before:
            since = self._slots.free_since(now, in_flight=self._in_flight, limit=self._limit())
            due = None if since is None else self.schedule.take_slot(max(since, self._not_before))
            if due is None:
                return
            self._start(due, now)

    def _start(self, due: Due, now: float, *, limited: bool = False) -> None:
        sent = self._work(self._costs.per_request, now)
        request = SentRequest(
            self._requests_of(due.stage).take(), number=self._sent, stage=due.stage, due=due.at, sent=sent
        )
        request.limited = limited
        self._sent += 1
        self._in_flight += 1
        self._leaving.append(request)

    def _requests_of(self, stage: int) -> ClientRequests:
        """Return the requests of a stage, and from then on the pauses of its users."""
        draws = self.schedule.plan.draws_of(stage)
        if self._requests is None or draws.stream != self._stream:
            self._stream, self._requests = draws.stream, self._open(draws=draws)
            self._slots.think(parse_think_time(self._workload.think_time, seed=(*draws.prompts, 0)))
        return self._requests

    def _work(self, seconds: float, at: float) -> float:
        """Add work to the event loop, and return the time at which it is done."""
        seconds *= self._costs.scale(at)
        self._busy_seconds += seconds
        self._busy_until = max(self._busy_until, at) + seconds
        return self._busy_until
