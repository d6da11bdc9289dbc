"""What really happened in a virtual run, second by second: the simulator's queue, the requests, and who held them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.tick import TICK_SECONDS
from servetop.simulator.virtual_run.admission_log import AdmissionLimit, AdmissionState
from servetop.simulator.virtual_run.virtual_run import VirtualRun
from tests.judgement.queue_truth import LASTING, LATE_SEND, SHORT_QUEUE, Queue, queue_periods

STEP = 0.1
"""Seconds between two looks at the state."""
_LIMITS = tuple(AdmissionLimit)
_GROWN = 1.4
"""Requests in flight at the end of the load, relative to its middle, from which they grew all the time."""
TTFT_WINDOW = 10.0


@dataclass(frozen=True, eq=False)
class RunState:
    """The truth about one run; times in seconds of the run."""

    run: VirtualRun

    @cached_property
    def times(self) -> FloatArray:
        """Instants from the start to the end of the run."""
        return np.arange(0.0, self.run.ticks[-1].end + STEP, STEP)

    @cached_property
    def _states(self) -> list[tuple[IntArray, IntArray, IntArray]]:
        """Waiting, running and limit of each replica at each instant."""
        return [self._sampled(states) for states in self.run.replica_admissions if states]

    def _sampled(self, states: tuple[AdmissionState, ...]) -> tuple[IntArray, IntArray, IntArray]:
        index = np.searchsorted(np.array([each.at for each in states]), self.times, side="right") - 1
        columns = (
            [0, *(each.waiting for each in states)],
            [0, *(each.running for each in states)],
            [0, *(_LIMITS.index(each.limit) for each in states)],
        )
        waiting, running, limit = (np.array(column, dtype=np.int64)[index + 1] for column in columns)
        return waiting, running, limit

    @cached_property
    def waiting(self) -> IntArray:
        """Requests that wait in the engine, at each instant; of all replicas."""
        return self._sum([waiting for waiting, _, _ in self._states])

    def waiting_at(self, replicas: Iterable[int]) -> IntArray:
        """Requests that wait in some replicas, which count from 0, at each instant."""
        return self._sum([self._states[each][0] for each in replicas])

    @cached_property
    def running(self) -> IntArray:
        """Sequences in the batch, at each instant; of all replicas."""
        return self._sum([running for _, running, _ in self._states])

    def fullest(self, start: float, until: float) -> int:
        """Most sequences in the batch of any replica in a period."""
        within = self.within(start, until)
        return max(int(running[within].max(initial=0)) for _, running, _ in self._states)

    def _sum(self, columns: list[IntArray]) -> IntArray:
        total: IntArray = np.zeros(self.times.size, dtype=np.int64)
        for column in columns:
            total = total + column
        return total

    def limit_share(self, limit: AdmissionLimit, start: float = 0.0, until: float = math.inf) -> float:
        """Fraction of the time with a queue in which a limit kept its first request waiting; NaN without a queue."""
        number, within = _LIMITS.index(limit), self.within(start, until)
        queued = [(waiting > SHORT_QUEUE) & within for waiting, _, _ in self._states]
        total = sum(int(each.sum()) for each in queued)
        held = sum(int((each & (state[2] == number)).sum()) for each, state in zip(queued, self._states, strict=True))
        return held / total if total else math.nan

    def limit_share_of_load(self, limit: AdmissionLimit) -> float:
        """Fraction of the last constant load, of all replicas, in which a limit kept more than two requests waiting."""
        number, within = _LIMITS.index(limit), self.within(*self.last_load)
        held = [within & (waiting > SHORT_QUEUE) & (limits == number) for waiting, _, limits in self._states]
        return sum(int(each.sum()) for each in held) / (len(held) * max(int(within.sum()), 1))

    def within(self, start: float, until: float) -> BoolArray:
        """The instants of a period."""
        return (self.times >= start) & (self.times <= until)

    @cached_property
    def queues(self) -> list[Queue]:
        """The periods in which a queue lasted, apart from breaks of up to a second."""
        return [each for each in self._all_queues if each.until - each.start >= LASTING - STEP / 2]

    @property
    def longest_queue(self) -> list[Queue]:
        """The longest period with a queue, however short; none without any."""
        return sorted(self._all_queues, key=lambda each: each.start - each.until)[:1]

    @cached_property
    def _all_queues(self) -> list[Queue]:
        """The periods with a queue of any replica, apart from breaks of up to a second."""
        queued = np.any([waiting > SHORT_QUEUE for waiting, _, _ in self._states], axis=0)
        return queue_periods(np.asarray(queued, dtype=np.bool_), self.times)

    @cached_property
    def preemptions(self) -> list[float]:
        """Times of the preemptions, of all replicas."""
        states = itertools.chain.from_iterable(self.run.replica_admissions)
        return sorted(each.at for each in states for _ in range(each.preempted))

    def first_limited(self, limit: AdmissionLimit) -> float | None:
        """When a limit first kept a request waiting."""
        states = itertools.chain.from_iterable(self.run.replica_admissions)
        return min((each.at for each in states if each.limit is limit), default=None)

    # --- the client's side ---

    @property
    def records(self) -> tuple[RequestRecord, ...]:
        """All requests."""
        return self.run.records

    @cached_property
    def load_end(self) -> float:
        """When the last request was due."""
        return max((record.due for record in self.records), default=0.0)

    @cached_property
    def in_flight(self) -> IntArray:
        """Requests sent and not ended, at each instant."""
        sent = np.sort([record.sent for record in self.records if record.sent is not None])
        done = np.sort([record.done_at or math.inf for record in self.records if record.sent is not None])
        return self._count(sent) - self._count(done)

    @cached_property
    def unstarted(self) -> IntArray:
        """Requests sent and without a first token, at each instant."""
        sent = [record for record in self.records if record.sent is not None]
        ends = [record.done_at if record.first_token_at is None else record.first_token_at for record in sent]
        started = np.sort([math.inf if end is None else end for end in ends])
        return self._count(np.sort([record.sent or 0.0 for record in sent])) - self._count(started)

    @cached_property
    def silences(self) -> list[tuple[float, float]]:
        """Start and end of each period without a token, in whole ticks, while requests were in flight."""
        ticks = self.run.ticks
        silent = [not tick.client.output_tokens and tick.client.gauges.in_flight > 0 for tick in ticks]
        periods = (
            list(group) for key, group in itertools.groupby(ticks, lambda tick: silent[tick.client.index]) if key
        )
        return [(each[0].start, each[-1].end) for each in periods]

    @property
    def longest_silence(self) -> float:
        """Most seconds without a token while requests were in flight."""
        return max((until - start for start, until in self.silences), default=0.0)

    def silent_before(self, at: float) -> float:
        """Seconds without a token up to a time; 0 if one has just arrived, or nothing was in flight."""
        return max((at - start for start, until in self.silences if start <= at <= until + TICK_SECONDS), default=0.0)

    @cached_property
    def held_back(self) -> IntArray:
        """Requests due and not sent, at each instant."""
        due = np.sort([record.due for record in self.records])
        sent = np.sort([math.inf if record.sent is None else record.sent for record in self.records])
        return self._count(due) - self._count(sent)

    def _count(self, events: FloatArray) -> IntArray:
        return np.searchsorted(events, self.times, side="right")

    @cached_property
    def failed(self) -> int:
        """Requests that failed; cancelled ones are not counted."""
        good = (RequestStatus.OK, RequestStatus.CANCELLED)
        return sum(record.status not in good for record in self.records)

    @cached_property
    def first_failure(self) -> float | None:
        """When the first request failed, or was due if it was never answered; None without one."""
        good = (RequestStatus.OK, RequestStatus.CANCELLED)
        bad = [record for record in self.records if record.status not in good]
        return min((record.due if record.done_at is None else record.done_at for record in bad), default=None)

    @cached_property
    def late_sends(self) -> float:
        """Fraction of the requests that were sent late by the client itself; 0 where a limit holds them back."""
        if any(stage.max_concurrency is not None for stage in self.run.stages):
            return 0.0
        return self._late

    @cached_property
    def late_in_closed_loop(self) -> float:
        """The same of a closed loop, in which a request is due when another one ends; 0 of other loads."""
        closed = all(math.isinf(stage.request_rate or 0.0) for stage in self.run.stages)
        return self._late if closed else 0.0

    @property
    def _late(self) -> float:
        late = [(record.sent or 0.0) - record.due > LATE_SEND for record in self.records if record.sent is not None]
        return sum(late) / len(late) if late else 0.0

    @cached_property
    def last_load(self) -> tuple[float, float]:
        """Start and end of the last load at a constant rate, ended by the end of all load; empty after a ramp."""
        last = self.run.stages[-1]
        if last.ramp_from is not None:
            return self.load_end, self.load_end
        begin = last.at
        for stage in reversed(self.run.stages):
            if stage.ramp_from is not None or stage.request_rate != last.request_rate:
                break
            begin = stage.at
        return begin, self.load_end

    @cached_property
    def grew(self) -> bool:
        """Whether the requests in flight grew for the whole last load, by more than chance."""
        begin, until = self.last_load
        middle, end = (self.mean(self.in_flight, at - 2.0, at) for at in ((begin + until) / 2, until))
        return begin < until and end > _GROWN * middle and end - middle > 4 * math.sqrt(end) + 2

    def mean(self, values: IntArray, start: float, until: float) -> float:
        """Mean of a column over a period; 0 for none."""
        part = values[self.within(start, until)]
        return float(part.mean()) if part.size else 0.0

    def met(self, record: RequestRecord, *, slack: float = 1.0) -> bool:
        """Whether a request met every objective times `slack`, with TTFT and E2EL from its due time."""
        if record.status is not RequestStatus.OK or record.first_token_at is None or record.done_at is None:
            return False
        measured = {
            "ttft": record.first_token_at - record.due,
            "tpot": record.tpot or 0.0,
            "e2el": record.done_at - record.due,
        }
        return all(measured[name] <= slack * limit for name, limit in self.run.header.config.goodput.items())

    def share_met(self, start: float = 0.0, until: float = math.inf, *, slack: float = 1.0) -> float:
        """Fraction of the requests due in a period that met every objective; NaN for none."""
        met = [self.met(record, slack=slack) for record in self.records if start <= record.due <= until]
        return sum(met) / len(met) if met else math.nan

    @cached_property
    def worst_ttft(self) -> float:
        """Highest 99th percentile of TTFT from due of any ten seconds, by the arrival of the first token.

        None of them begins before the first one: a few requests alone would be those of ten seconds.
        """
        first = sorted(
            (each.first_token_at, each.first_token_at - each.due) for each in self.records if each.first_token_at
        )
        if not first:
            return math.nan
        times, values = np.array(first).T
        ends = np.arange(min(times[0] + TTFT_WINDOW, times[-1]), times[-1] + 1.0, 0.5)
        low, high = np.searchsorted(times, ends - TTFT_WINDOW, side="right"), np.searchsorted(times, ends, side="right")
        return max(float(np.percentile(values[a:b], 99)) for a, b in zip(low, high, strict=True) if b > a)

    # --- what it means ---

    @cached_property
    def harmful_queues(self) -> list[Queue]:
        """The lasting queues of which more than 5 % of the requests, and more than one, missed an objective."""
        return [queue for queue in self.queues if self._harms(queue)]

    def _harms(self, queue: Queue) -> bool:
        part = [each for each in self.records if queue.start - 1.0 <= each.due <= queue.until]
        missed = sum(not self.met(each) for each in part)
        return missed > max(0.05 * len(part), 1)

    @property
    def overloaded(self) -> bool:
        """Whether a queue lasted and did harm."""
        return bool(self.harmful_queues)

    def queue_acts(self, at: float, *, since: float) -> bool:
        """Whether a harmful queue has lasted for so many seconds at a time."""
        return any(queue.start + since <= at <= queue.until for queue in self.harmful_queues)

    @cached_property
    def closed(self) -> bool:
        """Whether all load came from closed loops, so that no rate was asked for."""
        rates = [stage.request_rate for stage in self.run.stages if stage.request_rate is not None]
        return bool(rates) and all(math.isinf(rate) for rate in rates)

    @cached_property
    def held(self) -> bool:
        """Whether a concurrency limit under a rate kept requests waiting at the client for five seconds or more."""
        limited = any(stage.max_concurrency is not None for stage in self.run.stages) and not self.closed
        return limited and float((self.held_back > SHORT_QUEUE).sum()) * STEP >= LASTING
