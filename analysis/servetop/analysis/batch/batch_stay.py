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
    gaps = np.diff(record.chunk_times)
    usual = _median(gaps) if gaps.size else 0.0
    if record.server_queue is not None:
        admitted = sent + record.server_queue
    elif record.server_prefill is not None:
        admitted = first - record.server_prefill
    else:
        admitted = first - (usual if math.isnan(prefill) else prefill)
    last = float(record.chunk_times[-1]) if record.chunk_times.size else first
    return BatchStay(
        id=record.id,
        sent=sent,
        admitted=min(max(admitted, sent), first),
        first_token_at=first,
        until=last if record.done_at is None else record.done_at,
        reported=record.server_queue is not None or record.server_prefill is not None,
        failed=record.status is not RequestStatus.OK,
        pauses=_pauses(record.chunk_times, gaps, longer_than=max(PAUSE_FACTOR * usual, SHORTEST_PAUSE)),
    )


def _median(values: FloatArray) -> float:
    """Return the median, as `np.median` does, but without its overhead: it is computed for hundreds of requests."""
    ordered = np.sort(values)
    low, high = ordered[(ordered.size - 1) // 2], ordered[ordered.size // 2]
    return math.nan if np.isnan(ordered[-1]) else float((low + high) / 2)


def _pauses(times: FloatArray, gaps: FloatArray, *, longer_than: float) -> FloatArray:
    long = np.flatnonzero(gaps > longer_than)
    return np.column_stack((times[long], times[long + 1])) if long.size else _NO_PAUSES


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
