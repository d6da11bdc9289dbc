"""A request's stay in the running batch: admission, prefill, decode and the pauses between its tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import RequestRecord, RequestStatus

PAUSE_FACTOR = 8.0
"""A gap between chunks is a pause if it exceeds the request's median gap by this factor,"""
SHORTEST_PAUSE = 0.25
"""and this many seconds."""
_NO_PAUSES = np.empty((0, 2))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchStay:
    """The time of one request in the batch, in seconds of the run."""

    id: int
    sent: float
    admitted: float
    """When its prefill began."""
    first_token_at: float
    until: float
    """Its last byte."""
    reported: bool
    """Whether the engine reported the admission with the response; otherwise it is an estimate."""
    failed: bool
    pauses: FloatArray
    """Start and end of each gap between chunks that is much longer than the others; shape (pauses, 2)."""


def batch_stay(record: RequestRecord, *, prefill: float) -> BatchStay | None:
    """Return the stay of a request; None if no token came, because then it is not known whether it was admitted.

    `prefill` is the engine's mean prefill time in seconds, for requests without a time of their own. If it is NaN, the
    prefill is taken to be as long as the median gap between chunks, which is one step of the engine.
    """
    first, sent = record.first_token_at, record.sent
    if first is None or sent is None:
        return None
    gaps = record.chunk_times[1:] - record.chunk_times[:-1]
    if record.server_queue is not None:
        admitted = sent + record.server_queue
    elif record.server_prefill is not None:
        admitted = first - record.server_prefill
    else:
        admitted = first - (_median(gaps) if math.isnan(prefill) else prefill)
    last = float(record.chunk_times[-1]) if record.chunk_times.size else first
    return BatchStay(
        id=record.id,
        sent=sent,
        admitted=min(max(admitted, sent), first),
        first_token_at=first,
        until=last if record.done_at is None else record.done_at,
        reported=record.server_queue is not None or record.server_prefill is not None,
        failed=record.status is not RequestStatus.OK,
        pauses=_pauses(record.chunk_times, gaps),
    )


def _median(gaps: FloatArray) -> float:
    """Return the median, 0 without gaps; cheaper than `np.median`: it is computed for hundreds of requests."""
    if not gaps.size:
        return 0.0
    ordered = np.sort(gaps)
    return float((ordered[(ordered.size - 1) // 2] + ordered[ordered.size // 2]) / 2)


def _pauses(times: FloatArray, gaps: FloatArray) -> FloatArray:
    if gaps.max(initial=0.0) <= SHORTEST_PAUSE:  # most requests: their median is not needed
        return _NO_PAUSES
    long = np.flatnonzero(gaps > max(PAUSE_FACTOR * _median(gaps), SHORTEST_PAUSE))
    return np.column_stack((times[long], times[long + 1]))


def are_preemptions(pauses: FloatArray, times: FloatArray, preemptions: FloatArray) -> BoolArray:
    """Return for each pause whether the engine preempted requests meanwhile; shape (pauses,).

    `preemptions` are counts or rates in bins that end at `times`, NaN if unknown. A counter is read after it rose, so
    one bin after the pause counts too.
    """
    if times.size == 0 or pauses.size == 0:
        return np.zeros(len(pauses), dtype=np.bool_)
    until = np.concatenate(([0], np.cumsum(np.nan_to_num(preemptions) > 0)))
    first = np.searchsorted(times, pauses[:, 0], side="left")
    last = np.minimum(np.searchsorted(times, pauses[:, 1], side="left") + 2, times.size)
    return np.asarray(until[last] > until[np.minimum(first, last)])
