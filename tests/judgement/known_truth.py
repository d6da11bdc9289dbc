"""What is known about a scenario apart from any judgement: its state, and which constant rates its engine sustains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from servetop.analysis.engine_gauges import kv_usage
from servetop.core.arrays import IntArray
from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from tests.judgement.queue_truth import SHORT_QUEUE
from tests.judgement.run_state import RunState
from tests.judgement.scenario import Cause, Scenario

SHARE_KEPT = 0.95
"""Fraction of the requests that meet their objectives at a sustainable rate."""
JOINED_WITHIN = 10.0
"""Seconds between two preemptions of one overload."""
_MOSTLY = 0.5
_NOISE = 0.01
"""By which that fraction differs between draws of arrivals."""
_STEADY = 20.0
"""Seconds of one constant load after which the rest of it counts as steady."""
LIMITS = {Cause.KV: AdmissionLimit.KV, Cause.BATCH: AdmissionLimit.BATCH, Cause.RATE: AdmissionLimit.BUDGET}


@dataclass(frozen=True, eq=False)
class KnownTruth:
    """The truth of one scenario; rates in requests per second of the whole run, all replicas together."""

    scenario: Scenario

    @cached_property
    def state(self) -> RunState:
        """What happened, by the simulator's state."""
        return RunState(self.scenario.run)

    @property
    def cause(self) -> Cause:
        """What the scenario was confirmed to show."""
        return self.scenario.truth.cause

    @property
    def replicas(self) -> int:
        """The number of engines."""
        return self.scenario.plan.replicas

    @cached_property
    def other_limits(self) -> set[int]:
        """The batch limits of replicas that differ from the others."""
        plan = self.scenario.plan
        return {plan.spec_of(each).batch_limit for each in plan.replica_settings} - {plan.spec.batch_limit}

    @cached_property
    def stationary(self) -> bool:
        """Whether prompts were equally long all the time, apart from chance."""
        return self.cause is not Cause.LONG_PROMPTS and self.scenario.plan.config.workload.dataset != "trace"

    def kept_at(self, rate: float) -> bool | None:
        """Whether 95 % of the requests meet all objectives at a constant rate; None if unknown, or too close to it."""
        base = self.scenario.base
        if base is None or math.isnan(rate):
            return None
        share = base.share_in_time(rate / self.replicas) if rate > 0 else 1.0
        return None if abs(share - SHARE_KEPT) < _NOISE else share > SHARE_KEPT

    @cached_property
    def outgrown(self) -> bool:
        """Whether requests in flight grew for the whole load, at a rate that the engine does not sustain."""
        if self.state.closed or not self.state.grew or self.scenario.base is None:
            return False
        return self.kept_at(self.last_rate) is False

    @cached_property
    def last_rate(self) -> float:
        """The scheduled rate of the last load; NaN for a closed loop."""
        rates = [stage.request_rate for stage in self.state.run.stages if stage.request_rate is not None]
        return rates[-1] if rates and math.isfinite(rates[-1]) else math.nan

    @property
    def highest_rate(self) -> float:
        """The highest scheduled rate, the begins of ramps included; NaN for closed loops."""
        stages = self.state.run.stages
        rates = [rate for stage in stages for rate in (stage.request_rate, stage.ramp_from) if rate is not None]
        return max(filter(math.isfinite, rates), default=math.nan)

    @cached_property
    def overloaded(self) -> bool:
        """Whether requests arrived faster than the engine served them, in a queue or in its batch, with harm."""
        return self.state.overloaded or self.outgrown

    @cached_property
    def held_shares(self) -> tuple[float, float]:
        """Fractions of the time with a queue in which KV blocks, and the batch, kept it waiting; NaN without a queue.

        If requests pile up in the batch and no queue lasts, of the load that the engine does not sustain.
        """
        limits = (AdmissionLimit.KV, AdmissionLimit.BATCH)
        if self.outgrown and not self.state.queues:
            kv, batch = (self.state.limit_share_of_load(each) for each in limits)
        else:
            kv, batch = (self.state.limit_share(each) for each in limits)
        return kv, batch

    def waiting_between(self, start: float, until: float) -> tuple[float, float]:
        """Fewest and most requests that waited in the engine, with those that arrived during an iteration."""
        within, state = self.state.within(start, until), self.state
        if not within.any():
            return 0.0, 0.0
        counts = [state.waiting[within]]
        if self.cause is not Cause.NETWORK:
            counts.append(np.maximum(state.in_flight - state.running, 0)[within])
        return float(min(each.min() for each in counts)), float(max(each.max() for each in counts))

    @cached_property
    def foreign(self) -> IntArray:
        """Requests of other clients in the engine, at each instant of `state.times`."""
        state = self.state
        theirs: IntArray = np.maximum(state.waiting + state.running - state.in_flight, 0)
        return theirs

    @cached_property
    def shared(self) -> bool:
        """Whether other clients use the engine for most of the load, whatever their requests do to it."""
        loaded = self.state.within(self.state.run.stages[0].at, self.state.load_end)
        return bool(np.mean(self.foreign[loaded] > 0) > _MOSTLY)

    @cached_property
    def disturbed(self) -> bool:
        """Whether requests waited for a moment, and many missed an objective."""
        return bool(self.state.waiting.max(initial=0) > SHORT_QUEUE) and self.state.share_met() < SHARE_KEPT

    @cached_property
    def left(self) -> int:
        """Requests that the run gave up: sent, and not served within the drain timeout."""
        return sum(record.status == "cancelled" for record in self.state.records)

    @cached_property
    def sequences_that_fit(self) -> tuple[float, float]:
        """Fewest and most sequences that the KV blocks of all replicas hold by the lengths of all requests."""
        facts, records = self.state.run.header.engine, self.state.records
        blocks = (facts.kv_blocks_total or 0) if facts else 0
        tokens = self.usable_blocks * blocks * ((facts.block_size or 16) if facts else 16)
        prompt = sum(each.prompt_tokens for each in records) / len(records)
        output = sum(each.output_tokens for each in records) / len(records)
        return tokens / (prompt + output), tokens / (prompt + output / 2)

    @cached_property
    def ran_in_queues(self) -> float:
        """Median of the sequences that ran while others waited; NaN without a queue."""
        queued = self.state.running[self.state.waiting > SHORT_QUEUE]
        return float(np.median(queued)) if queued.size else math.nan

    @cached_property
    def sequences_held(self) -> tuple[float, float]:
        """Fewest and most sequences that the KV blocks of all replicas hold, by lengths and by what ran in queues."""
        found = [*self.sequences_that_fit, self.ran_in_queues]
        return float(np.nanmin(found)), float(np.nanmax(found))

    @cached_property
    def mean_ttfts(self) -> tuple[float, float]:
        """Mean TTFT from sent at the client, and by the engine, in seconds; NaN for none."""
        client = [each.first_token_at - (each.sent or 0.0) for each in self.state.records if each.first_token_at]
        pages = [tick.engine for tick in self.state.run.ticks if tick.engine is not None]
        seconds, count = (pages[-1].first_token_seconds_total, pages[-1].first_tokens_total) if pages else (None, None)
        return float(np.mean(client)) if client else math.nan, (seconds or 0.0) / count if count else math.nan

    @cached_property
    def held_outside(self) -> float:
        """Fraction of the requests in flight, or of TTFT if that is more, that is not the engine's."""
        state, (client, engine) = self.state, self.mean_ttfts
        flying = float(state.in_flight.mean())
        outside = 1 - float((state.waiting + state.running).mean()) / flying if flying else 0.0
        return float(np.nanmax([0.0, outside, 1 - engine / client]))

    def kv_peak(self, start: float, until: float) -> float:
        """Highest KV usage of a period, 0..1; 0 if unknown."""
        pages = [tick.engine for tick in self.state.run.ticks if start <= tick.end <= until and tick.engine is not None]
        return max((kv_usage(each) for each in pages if not math.isnan(kv_usage(each))), default=0.0)

    @property
    def usable_blocks(self) -> float:
        """Fraction of the KV blocks that the engine could use in the end."""
        leak, facts = self.scenario.plan.leak, self.state.run.header.engine
        blocks = (facts.kv_blocks_total or 0) // self.replicas if facts else 0
        return 1.0 if leak is None or not blocks else 1 - leak.lost_by(self.state.load_end, blocks) / blocks

    @cached_property
    def onsets(self) -> list[float]:
        """Times at which the trouble may be said to begin.

        Starts of the lasting queues; the first preemption and the first request that a limit kept waiting; the first
        request that was late, failed or long; for requests that pile up in the batch, the start of that load; the first
        pause, and the first in which no token arrived for a second; for a slow client, the start of a load that is
        faster than it can send. Preemptions more than JOINED_WITHIN apart are those of several overloads; if no queue
        lasted, the longest one counts.
        """
        truth, state = self.scenario.truth, self.state
        queues = state.queues or state.longest_queue
        found = [truth.onset, truth.first_sign, *(queue.start for queue in queues), *self._preemption_starts]
        found += self._loads_beyond_client
        found += [state.first_limited(limit) for limit in AdmissionLimit if limit is not AdmissionLimit.NONE]
        found += [stage.at for stage in state.run.stages] if self.outgrown else []
        silences = [each for each in state.silences if each[1] - each[0] >= 1.0]
        felt = [any(a < pause.until and pause.start < b for a, b in silences) for pause in self.scenario.plan.pauses]
        found += [pause.start for pause, each in zip(self.scenario.plan.pauses, felt, strict=True) if each][:1]
        return [at for at in found if at is not None]

    @property
    def _preemption_starts(self) -> list[float]:
        """Times of the preemptions before which there was none for JOINED_WITHIN."""
        times = self.state.preemptions
        return [at for before, at in zip([-math.inf, *times], times, strict=False) if at - before > JOINED_WITHIN]

    @property
    def _loads_beyond_client(self) -> list[float]:
        """Starts of the constant loads that are faster than a slow client can send."""
        fastest, stages = self.scenario.truth.client_rate or math.inf, self.state.run.stages
        rates = [(each.at, each.request_rate or 0.0) for each in stages if each.ramp_from is None]
        return [at for at, rate in rates if fastest < rate < math.inf]

    @cached_property
    def steady_rate(self) -> float:
        """Highest realised rate of a constant load that met the objectives after its first 20 s; 0 for none."""
        best, stages = 0.0, [*self.state.run.stages]
        ends = [*(stage.at for stage in stages[1:]), self.state.load_end]
        for stage, end in zip(stages, ends, strict=True):
            start = stage.at + _STEADY
            if (
                stage.ramp_from is not None
                or end - start < _STEADY
                or not math.isfinite(stage.request_rate or math.inf)
            ):
                continue
            count = sum(start <= record.due <= end for record in self.state.records)
            kept = self.state.share_met(start, end) >= SHARE_KEPT + _NOISE
            best = max(best, count / (end - start)) if kept and not self.state.grew else best
        return best

    def names(self, cause: Cause) -> bool | None:
        """Whether this is the cause: True, False, or None if it is a part of it or cannot be decided."""
        match cause:
            case Cause.KV | Cause.BATCH | Cause.RATE:
                return self._limited_by(cause)
            case Cause.LONG_PROMPTS:
                return True if self.cause is cause else False if self.stationary else None
            case Cause.CLIENT:
                return self.state.late_sends > 0.01
            case Cause.FAILING:
                return self.state.failed >= 0.01 * len(self.state.records)
            case Cause.CONCURRENCY:
                return self.state.closed or self.state.held
            case Cause.MISSED:
                return self.state.share_met(slack=0.98) < SHARE_KEPT
            case Cause.HEALTHY:
                return self._healthy()
            case Cause.OTHERS:
                return True if self.cause is cause else None if self.shared else False
            case _:
                return self.cause is cause

    def _limited_by(self, cause: Cause) -> bool | None:
        if cause is Cause.RATE and (self.state.closed or not self.overloaded):
            return None if self.disturbed and not self.state.closed else False
        share = self.state.limit_share(LIMITS[cause])
        if math.isnan(share):
            return cause is Cause.RATE and self.outgrown
        if share < 0.25:
            return None if cause is Cause.RATE else False
        return None if self.cause not in LIMITS else True

    def _healthy(self) -> bool | None:
        if self.cause is Cause.NETWORK and not self.state.grew:
            return None
        met = self.state.share_met()
        if self.overloaded or self.state.failed >= 0.01 * len(self.state.records) or self.left > 2 or met < 0.9:
            return False
        return True if met >= SHARE_KEPT and not self.state.queues else None
