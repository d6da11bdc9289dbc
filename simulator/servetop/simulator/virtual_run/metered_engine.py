"""The engine of a virtual run: the real-time driver on a clock that is set, with the metrics that a scrape returns."""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

from servetop.core.clock import ManualClock
from servetop.core.events import EngineSample
from servetop.simulator.dialects.metric_counters import MetricCounters
from servetop.simulator.model.cost import CostModel
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.scheduling.build import build_scheduler
from servetop.simulator.server.realtime import RealTimeEngine
from servetop.simulator.virtual_run.admission_log import AdmissionLimit, AdmissionState, admission_state
from servetop.simulator.virtual_run.boundary_engine import BoundaryEngine
from servetop.simulator.virtual_run.engine_faults import EnginePause, FaultSchedule, KvLeak
from servetop.simulator.virtual_run.sent_request import SentRequest

SCRAPE_SECONDS = 0.001
"""Duration of a scrape."""


class TokenListener(Protocol):
    """Receives what the engine sends to the client."""

    def tokens(self, count: int, at: float) -> None:
        """Handle `count` tokens that arrive at `at`."""
        ...

    def first_token(self, seq: SimSequence, at: float) -> None:
        """Handle the first token of a sequence."""
        ...

    def token_gap(self, seconds: float, count: int) -> None:
        """Handle the inter-token latency of `count` sequences."""
        ...

    def completed(self, seq: SimSequence, at: float) -> None:
        """Handle the last token of a sequence."""
        ...


class _Meter(MetricCounters):
    """Counts the engine's events, and passes them to the client."""

    def __init__(self, listener: TokenListener) -> None:
        super().__init__()
        self._listener = listener
        self.first_token_seconds = 0.0
        self.first_tokens = 0
        self.with_later_tokens = 0
        """Finished requests with more than one token."""

    def emitted(self, count: int, *, due: float) -> None:
        super().emitted(count, due=due)
        if count:
            self._listener.tokens(count, due)

    def first(self, seq: SimSequence, at: float, /) -> None:
        super().first(seq, at)
        self.first_token_seconds += at - seq.arrival
        self.first_tokens += 1
        self._listener.first_token(seq, at)

    def gap(self, seconds: float, count: int, /) -> None:
        self._listener.token_gap(seconds, count)

    def finished(self, seq: SimSequence, at: float, /) -> None:
        super().finished(seq, at)
        self.with_later_tokens += seq.output_tokens > 1
        self._listener.completed(seq, at)


class MeteredEngine:
    """One simulated engine at the times of `clock`.

    `admissions` holds the state after every scheduling decision, and at every arrival while no request can be admitted:
    one decision may then hold for many iterations.
    """

    def __init__(
        self,
        spec: SimSpec,
        listener: TokenListener,
        *,
        clock: ManualClock,
        at_boundaries: bool = False,
        leak: KvLeak | None = None,
        pauses: tuple[EnginePause, ...] = (),
    ) -> None:
        self.scheduler = build_scheduler(spec)
        self.admissions: list[AdmissionState] = []
        self._clock = clock
        self._wake_at = math.inf
        self._meter = _Meter(listener)
        engine = BoundaryEngine if at_boundaries else RealTimeEngine
        self._engine = engine(self.scheduler, clock=clock.now, wake_at=self._arm, events=self._meter)
        self._planned: object = None
        self._busy_since: float | None = None
        self._busy_seconds = 0.0
        self._faults = FaultSchedule(leak, pauses, blocks=self.scheduler.blocks.total)
        self._paused_until = -math.inf
        self._shown: EngineSample | None = None
        """The metrics page of a paused engine."""

    @property
    def wake_at(self) -> float:
        """Time of the next call of `wake`; infinity for an idle engine without further faults."""
        return min(self._wake_at, self._faults.next_at)

    def wake(self) -> None:
        """Run the iteration that ends now, or begin a fault; a pause begins before an iteration ends."""
        if self._faults.next_at <= self._clock.now():
            self._fail(self._faults.take())
        else:
            self._engine.wake()
        self._observe()

    def submit(self, request: SentRequest) -> SimSequence | None:
        """Queue a request that arrives now; None if the engine can never serve it."""
        seq = self._engine.submit(request.request, request)
        self._observe()
        return seq

    def drop(self, seq: SimSequence) -> None:
        """Drop a sequence whose client has disconnected."""
        self._engine.drop(seq)
        self._meter.aborted()

    def set_max_num_seqs(self, limit: int) -> None:
        """Change the batch-size limit."""
        self._engine.set_max_num_seqs(limit)

    def set_cost(self, cost: CostModel) -> None:
        """Change the durations of iterations, from the next one on."""
        self._engine.set_cost(cost)

    @property
    def busy_seconds(self) -> float:
        """Time in which the engine computed, up to now."""
        since = self._busy_since  # later than now in a pause
        return self._busy_seconds + (0.0 if since is None else max(self._clock.now() - since, 0.0))

    def stop(self) -> None:
        """Stop computing for good."""
        self._wake_at = math.inf
        self._faults.clear()

    def sample(self) -> EngineSample:
        """Return what a scrape of the metrics page yields now."""
        now = self._clock.now()
        if self._shown is None or now >= self._paused_until:
            return self._page(now)
        return dataclasses.replace(self._shown, scrape_start=now, scrape_end=now + SCRAPE_SECONDS)

    def _page(self, now: float) -> EngineSample:
        scheduler, meter = self.scheduler, self._meter
        prefix, ended = scheduler.prefix, float(meter.finishes)
        return EngineSample(
            scrape_start=now,
            scrape_end=now + SCRAPE_SECONDS,
            running=float(scheduler.running),
            waiting=float(len(scheduler.waiting) + len(scheduler.swapped)),
            kv_blocks_used=float(self._engine.kv_blocks_used),
            kv_blocks_total=float(scheduler.blocks.total),
            kv_usage=self._engine.kv_usage,
            preemptions_total=float(scheduler.preemptions),
            prompt_tokens_total=float(meter.prompt_tokens),
            generation_tokens_total=float(meter.generated_tokens),
            prefix_cache_hits_total=float(prefix.hit_tokens if prefix else 0),
            prefix_cache_queries_total=float(prefix.queried_tokens if prefix else 0),
            requests_finished_total=ended,
            max_num_seqs=float(scheduler.limits.max_num_seqs),
            first_token_seconds_total=meter.first_token_seconds,
            first_tokens_total=float(meter.first_tokens),
            queue_seconds_total=float(meter.seconds["queue"]),
            queued_requests_total=ended,
            prefill_seconds_total=float(meter.seconds["prefill"]),
            prefilled_requests_total=ended,
            tpot_seconds_total=float(meter.seconds["per_token"]),
            tpot_requests_total=float(meter.with_later_tokens),
            e2el_seconds_total=float(meter.seconds["e2e"]),
            e2el_requests_total=ended,
        )

    def _fail(self, fault: EnginePause | int) -> None:
        if not isinstance(fault, EnginePause):
            self._engine.lose_blocks(fault)
            return
        now = self._clock.now()
        self._shown = self._page(now)
        self._engine.pause(fault.seconds)
        self._paused_until = now + fault.seconds
        if self._busy_since is not None:
            self._busy_seconds, self._busy_since = self.busy_seconds, self._paused_until

    def _arm(self, at: float) -> None:
        self._wake_at = at

    def _observe(self) -> None:
        work = self._engine.work
        if (work is None) != (self._busy_since is None):
            self._busy_seconds, self._busy_since = self.busy_seconds, None if work is None else self._clock.now()
        if work is not self._planned:
            self._planned = work
            self.admissions.append(admission_state(self.scheduler, self._clock.now()))
            return
        waiting = len(self.scheduler.waiting) + len(self.scheduler.swapped)
        if not self.admissions or waiting <= self.admissions[-1].waiting:
            return
        now = admission_state(self.scheduler, self._clock.now())
        if now.limit in (AdmissionLimit.BATCH, AdmissionLimit.KV):
            self.admissions.append(dataclasses.replace(now, preempted=0))
