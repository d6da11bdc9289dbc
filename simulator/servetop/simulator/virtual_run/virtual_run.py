"""Runs all stages of a run in virtual time against simulated engines, and returns what a recording would hold."""

from __future__ import annotations

import math
import operator
import random
from collections import deque
from dataclasses import dataclass, replace

from servetop.core.clock import ClockAnchor, ManualClock
from servetop.core.events import (
    EngineSample,
    LogLine,
    ReplicaSample,
    RequestRecord,
    RequestStatus,
    RunEnd,
    StageChange,
)
from servetop.core.interfaces.run_source import RunHeader, RunUpdate
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.virtual_run.admission_log import AdmissionState
from servetop.simulator.virtual_run.client_tick_fold import ClientTickFold
from servetop.simulator.virtual_run.paced_client import PacedClient
from servetop.simulator.virtual_run.replica_set import ReplicaSet
from servetop.simulator.virtual_run.sent_request import SentRequest
from servetop.simulator.virtual_run.virtual_run_plan import Outage, OutageKind, VirtualRunPlan
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.stage_draws import DrawSeeds


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRun:
    """A finished virtual run: what its recording would hold, and the ground truth about the engine's queue."""

    header: RunHeader
    ticks: tuple[Tick, ...]
    stages: tuple[StageChange, ...]
    log_lines: tuple[LogLine, ...]
    records: tuple[RequestRecord, ...]
    """Ended requests, in order of their end; each has at most two chunks, the first token and all others, or with
    `token_times` of the plan one a token."""
    end: RunEnd
    admissions: tuple[AdmissionState, ...]
    """The queue after every scheduling decision, of the first replica."""
    replica_admissions: tuple[tuple[AdmissionState, ...], ...] = ()
    """The queue of each replica; the first are `admissions`."""
    replica_samples: tuple[ReplicaSample, ...] = ()
    """Scrapes of each replica, if there are several."""

    @property
    def update(self) -> RunUpdate:
        """Return the whole run as one update of a `RunSource`."""
        return RunUpdate(
            ticks=self.ticks,
            stages=self.stages,
            log_lines=self.log_lines,
            replica_samples=self.replica_samples,
            header=self.header,
            end=self.end,
        )


_time = operator.itemgetter(0)
_BEAT_SECONDS = 0.020
_EARLY_SCRAPES = 0.25
"""Fraction of the scrapes at the boundary of two ticks that belong to the earlier one, and then to both."""
_REFUSAL_SECONDS = 0.001
"""Time after which the engine's refusal of a request arrives."""


def run_virtually(plan: VirtualRunPlan) -> VirtualRun:
    """Run the plan from its first request to the end of its last one; UsageError for a plan that cannot run."""
    return _Run(plan).run()


class _Run:
    """The events of one run in order of time: ends of ticks, iterations, sends, refusals, heartbeats, the crash."""

    def __init__(self, plan: VirtualRunPlan) -> None:
        self._plan = plan
        config, spec = plan.config, plan.spec
        self._clock = ManualClock()
        self._engines = ReplicaSet(plan, self, clock=self._clock)
        stages = tuple(enumerate(config.stages, start=plan.first_stage))
        load = LoadPlan(
            segments=stages,
            draws=DrawSeeds.of(config).plan(stages),
            begin=plan.begin,
            drain_at_stages=config.drain_at_stages,
            drain_timeout=config.drain_timeout,
        )
        self._client = PacedClient(
            load, config.workload, spec, seed=config.seed, costs=plan.client, whole_prompts=plan.whole_prompts
        )
        self._client.ticks = ClientTickFold(config.goodput)
        self._random = random.Random(config.seed)
        self._scrape_times = random.Random(config.seed)
        self._in_flight: dict[SentRequest, SimSequence] = {}
        self._refused: deque[tuple[float, SentRequest, str]] = deque()
        crashes = [each.start for each in plan.outages if each.kind is OutageKind.CRASH]
        self._crash_at = min(crashes, default=math.inf)
        self._crashed = False
        self._cancelled_at = -math.inf
        self._finished_at = math.inf
        self._index = 0
        self._beats = 1
        self._sample: EngineSample | None = None
        self._replica_samples: list[ReplicaSample] = []
        self._ticks: list[Tick] = []
        self._stages: list[StageChange] = []
        self._records: list[RequestRecord] = []
        self._log: list[LogLine] = []

    def run(self) -> VirtualRun:
        """Process all events up to the end of the tick in which the last request ended."""
        while not self._ticks or self._ticks[-1].end <= self._finished_at:
            self._step()
        anchor = ClockAnchor(origin_ns=0, wall_epoch_s=0.0)
        return VirtualRun(
            header=RunHeader(config=self._plan.config, anchor=anchor, engine=self._engines.facts),
            ticks=tuple(self._ticks),
            stages=tuple(self._stages),
            log_lines=tuple(self._log),
            records=tuple(self._records),
            end=RunEnd(at=self._clock.now(), exit_code=0, reason=""),
            admissions=self._engines.admissions[0],
            replica_admissions=self._engines.admissions,
            replica_samples=tuple(self._replica_samples),
        )

    def _step(self) -> None:
        """Advance to the next event and process it; of simultaneous ones the end of a tick is first.

        A client sends before an engine plans at the same time, if the plan says so.
        """
        engine, client = (self._engines.wake_at, self._engines.wake), (self._client.wake_at(), self._send)
        events = (
            ((self._index + 1) * TICK_SECONDS, self._end_tick),
            (self._crash_at, self._crash),
            *((client, engine) if self._plan.at_boundaries else (engine, client)),
            (self._drain_deadline(), self._cancel_all),
            (self._refused[0][0] if self._refused else math.inf, self._end_refused),
            (self._beats * _BEAT_SECONDS, self._beat),
        )
        at, process = min(events, key=_time)
        self._clock.advance_to(at)
        process()
        self._begin_stages()
        if self._client.schedule.finished:
            self._finished_at = min(self._finished_at, at)

    def _drain_deadline(self) -> float:
        deadline = self._client.schedule.drain_deadline
        return deadline if deadline > self._cancelled_at else math.inf

    def _end_tick(self) -> None:
        now = self._clock.now()
        stage = self._stages[-1].index if self._stages else -1
        early = self._scrape_times.random() < _EARLY_SCRAPES
        if early:
            self._scrape()
        client = self._client.ticks.build(
            self._index,
            gauges=self._client.gauges(now, stage=stage),
            cpu_seconds=self._client.take_cpu_seconds(now),
        )
        self._ticks.append(Tick(client=client, engine=self._sample, gpus=self._engines.gpu_samples()))
        if not early:
            self._scrape()
        self._index += 1

    def _scrape(self) -> None:
        self._sample = None if self._crashed else self._engines.sample()
        if not self._crashed:
            self._replica_samples += self._engines.replica_samples()

    def _beat(self) -> None:
        self._client.beat(self._clock.now())
        self._beats += 1

    # --- requests ---

    def _send(self) -> None:
        for request in self._client.advance(self._clock.now()):
            self._submit(request)

    def _begin_stages(self) -> None:
        changes = self._client.schedule.changes
        for change in changes:
            if change.max_num_seqs is not None:
                self._engines.set_max_num_seqs(change.max_num_seqs)
            limit = self._engines.max_num_seqs
            self._stages.append(replace(change, max_num_seqs=limit))
        changes.clear()

    def _submit(self, request: SentRequest) -> None:
        request.clock = self._clock.now if self._plan.token_times else None
        if self._crashed:
            self._refuse(request, "connection refused")
        elif any(self._fails(outage) for outage in self._plan.outages):
            self._refuse(request, "HTTP 500: Internal Server Error")
            self._log_line(
                "ERROR [servetop.sim] Exception in ASGI application: CUDA error: device-side assert triggered"
            )
        else:
            seq = self._engines.submit(request)
            if seq is None:
                self._refuse(request, self._engines.refusal(request))
            else:
                self._in_flight[request] = seq

    def _fails(self, outage: Outage) -> bool:
        active = outage.kind is OutageKind.HTTP_500 and outage.start <= self._clock.now() < outage.until
        return active and self._random.random() < outage.share

    def _refuse(self, request: SentRequest, error: str) -> None:
        after = 0.0 if self._plan.at_boundaries else _REFUSAL_SECONDS
        self._refused.append((self._clock.now() + after, request, error))

    def _end_refused(self) -> None:
        at, request, error = self._refused.popleft()
        self._end(request, RequestStatus.ERROR, at, error=error)

    def _cancel_all(self) -> None:
        """Cancel everything that has not finished within the drain timeout."""
        now = self._cancelled_at = self._clock.now()
        self._client.cancel_unsent()
        for request, seq in list(self._in_flight.items()):
            self._engines.drop(request, seq)
            del self._in_flight[request]
            error = "not finished within the drain timeout"
            self._end(request, RequestStatus.CANCELLED, now, error=error)

    def _crash(self) -> None:
        now, self._crash_at, self._crashed = self._clock.now(), math.inf, True
        self._engines.stop()
        self._log_line("ERROR [servetop.sim] EngineCore encountered a fatal error: CUDA error: out of memory")
        for request in list(self._in_flight):
            del self._in_flight[request]
            status = RequestStatus.ERROR if request.first_token_at is None else RequestStatus.TRUNCATED
            self._end(request, status, now, error="the server closed the connection")

    def _log_line(self, text: str) -> None:
        self._log.append(LogLine(at=self._clock.now(), text=text))

    def _end(
        self,
        request: SentRequest,
        status: RequestStatus,
        at: float,
        *,
        output_tokens: int = 0,
        error: str | None = None,
    ) -> None:
        record = request.record(status, at, output_tokens=output_tokens, error=error)
        self._records.append(record)
        self._client.ticks.ended(record)
        self._client.ended(request, status, at)

    # --- events of the engine (TokenListener) ---

    def tokens(self, count: int, at: float) -> None:
        self._client.chunks(count, at)

    def first_token(self, seq: SimSequence, at: float) -> None:
        request: SentRequest | None = seq.sink
        if request is not None:
            request.first_token_at = at
            self._client.ticks.first_token(request, at)

    def token_gap(self, seconds: float, count: int) -> None:
        self._client.ticks.gap(seconds, count)

    def completed(self, seq: SimSequence, at: float) -> None:
        request: SentRequest = seq.sink
        del self._in_flight[request]
        self._end(request, RequestStatus.OK, at, output_tokens=seq.output_tokens)
