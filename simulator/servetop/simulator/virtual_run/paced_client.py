"""The client of a virtual run: sends a plan as the load generator does, on an event loop whose work takes time."""

from __future__ import annotations

import math
import random
from collections import deque

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.core.tick import LoadGauges
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.predict.client_requests import RequestStreams
from servetop.simulator.predict.virtual_client import Sending, VirtualClient
from servetop.simulator.virtual_run.client_tick_fold import ClientTickFold
from servetop.simulator.virtual_run.sent_request import SentRequest
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts
from servetop.workload.build import arrivals_of
from servetop.workload.stages.plan import LoadPlan

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
        if workload.n > 1 or workload.cancel_fraction:
            raise UsageError("a virtual run has requests with one completion that the client does not cancel")
        self.ticks = ClientTickFold()
        requests = RequestStreams(workload, spec, whole_prompts=whole_prompts)
        self._client = VirtualClient(plan, workload, arrivals=arrivals_of(workload), requests=requests.of)
        self.schedule = self._client.schedule
        self._costs = costs
        self._jitter = random.Random(seed)
        self._leaving: deque[SentRequest] = deque()
        self._sent = 0
        self._busy_until = 0.0
        self._busy_seconds = 0.0
        self._reported_seconds = 0.0

    def wake_at(self) -> float:
        """Time of the next call of `advance`; infinity if it depends on the engine."""
        return min(self._client.wake_at, self._leaving[0].sent if self._leaving else math.inf)

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

    def ended(self, request: SentRequest, status: RequestStatus, at: float) -> None:
        """Free the slot of a request that ended at `at`; a closed loop pauses after failures."""
        failed = status is RequestStatus.ERROR and request.first_token_at is None
        ok = status is RequestStatus.OK
        self._client.ended(request.request, at, stage=request.stage, ok=ok, failed=failed)
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
        counts = LoadGauges(
            stage=stage,
            max_concurrency=self._client.limit,
            in_flight=self._client.in_flight - len(self._leaving),
            queued=self._client.queued,
        )
        return self.schedule.gauges(counts, at=at)

    def take_cpu_seconds(self, at: float) -> float:
        """Return the CPU time used since the last call."""
        done = self._busy_seconds - max(0.0, self._busy_until - at)
        before, self._reported_seconds = self._reported_seconds, done
        return max(0.0, done - before)

    def cancel_unsent(self) -> None:
        """Drop the requests that wait for the concurrency limit or for the event loop."""
        self._client.in_flight -= len(self._leaving)
        self._leaving.clear()
        self._client.cancel_queued()

    def _start_due(self, now: float) -> None:
        queued = self._client.queued
        for sending in self._client.advance(now):
            queued -= sending.limited
            self._start(sending, now)
        for _ in range(self._client.queued - queued):
            self.ticks.due()

    def _start(self, sending: Sending, now: float) -> None:
        sent = self._work(self._costs.per_request, now)
        due = sending.due
        request = SentRequest(sending.request, number=self._sent, stage=due.stage, due=due.at, sent=sent)
        request.limited = sending.limited
        self._sent += 1
        self._leaving.append(request)

    def _work(self, seconds: float, at: float) -> float:
        """Add work to the event loop, and return the time at which it is done."""
        seconds *= self._costs.scale(at)
        self._busy_seconds += seconds
        self._busy_until = max(self._busy_until, at) + seconds
        return self._busy_until
