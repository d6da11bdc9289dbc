"""Reads from the simulator's state when queues lasted, what kept them waiting, and which requests were late."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import RequestRecord
from servetop.simulator.virtual_run.admission_log import AdmissionLimit, AdmissionState
from servetop.simulator.virtual_run.virtual_run import VirtualRun


@dataclass(frozen=True, slots=True)
class LastingQueue:
    """A period in which more than two requests waited, apart from breaks of up to a second."""

    start: float
    until: float
    limit: AdmissionLimit
    """What kept the first request waiting for most of the time."""
    share: float
    """Fraction of the waiting time for which that was so."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A period in which more than two requests waited in the engine, apart from breaks of up to a second."""

    start: float
    until: float


SHORT_QUEUE = 2
"""Up to this many waiting requests are about to join the batch."""
LASTING = 5.0
"""Seconds after which a queue or a delay counts as lasting."""
_BREAK = 1.0
"""Seconds without a queue that end it."""
LATE_SEND = 0.100
"""Seconds after its due time from which a request is sent late."""


def queue_periods(queued: BoolArray, times: FloatArray) -> list[Queue]:
    """Return the periods with a queue, apart from breaks of up to a second, by its state at evenly spaced times."""
    positions = np.flatnonzero(queued)
    parts = np.split(positions, np.flatnonzero(np.diff(times[positions]) > _BREAK + 1e-6) + 1)
    return [Queue(float(times[part[0]]), float(times[part[-1]])) for part in parts if part.size]


def lasting_queues(run: VirtualRun) -> list[LastingQueue]:
    """Return the queues that lasted for five seconds or more, in order of time."""
    found: list[LastingQueue] = []
    start, until = 0.0, -1.0
    seconds: dict[AdmissionLimit, float] = {}
    for state, end in _with_ends(run):
        if state.waiting <= SHORT_QUEUE:
            continue
        if state.at - until > _BREAK:
            found += _queue(start, until, seconds)
            start, seconds = state.at, {}
        until = end
        seconds[state.limit] = seconds.get(state.limit, 0.0) + end - state.at
    return found + _queue(start, until, seconds)


def _with_ends(run: VirtualRun) -> Iterator[tuple[AdmissionState, float]]:
    """Each state of the engine's queue, and the time of the next one."""
    ends = itertools.chain((state.at for state in run.admissions[1:]), (run.ticks[-1].end,))
    return zip(run.admissions, ends, strict=False)


def _queue(start: float, until: float, seconds: dict[AdmissionLimit, float]) -> list[LastingQueue]:
    if until - start < LASTING:
        return []
    limit = max(seconds, key=lambda each: seconds[each])
    return [LastingQueue(start, until, limit, seconds[limit] / sum(seconds.values()))]


def limit_shares(run: VirtualRun, start: float, until: float) -> dict[AdmissionLimit, float]:
    """Return the fractions of a period in which each limit kept the first request waiting, or nothing waited."""
    seconds = dict.fromkeys(AdmissionLimit, 0.0)
    for state, end in _with_ends(run):
        seconds[state.limit] += max(0.0, min(end, until) - max(state.at, start))
    total = sum(seconds.values())
    return {limit: part / total for limit, part in seconds.items()} if total else seconds


def first_sign(states: Sequence[AdmissionState], limit: AdmissionLimit) -> float | None:
    """Return when the limit first kept a request waiting, or the first preemption for KV blocks."""
    kv = limit is AdmissionLimit.KV
    return next((state.at for state in states if state.limit is limit or (kv and state.preempted)), None)


def late_sends(records: Sequence[RequestRecord]) -> tuple[float | None, float | None]:
    """Return when a request was first sent late, and from when on all were for at least five seconds."""
    times = sorted((record.due, (record.sent or 0.0) - record.due) for record in records)
    first = next((due for due, slip in times if slip > LATE_SEND), None)
    since: float | None = None
    for due, slip in times:
        if slip <= LATE_SEND:
            since = None
            continue
        since = due if since is None else since
        if due - since >= LASTING:
            return first, since
    return first, None


def in_time(record: RequestRecord, objective: float) -> bool:
    """Whether the first token of a request met the objective, counted from its due time."""
    return record.first_token_at is not None and record.first_token_at - record.due <= objective


def share_in_time(run: VirtualRun, objective: float, *, start: float = 0.0, until: float = 1e9) -> float:
    """Return the fraction of the requests due in a period whose first token met the objective; 1 without requests."""
    within = [in_time(record, objective) for record in run.records if start <= record.due < until]
    return sum(within) / len(within) if within else 1.0
