"""The phases of one request on the time axis: queue, prefill, decode, and the gaps in which it stood still."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import RequestRecord
from servetop.core.tick import TICK_SECONDS
from servetop.tui.film.batch_stay import PAUSE_FACTOR, SHORTEST_PAUSE

Preemptions = Callable[[float, float], float]
"""Preemptions of the engine between two times of the run; NaN if it does not export them."""


@dataclass(frozen=True, slots=True)
class Phase:
    """How a phase is drawn and named."""

    glyph: str
    style: str
    name: str


QUEUED = Phase("╌", "muted", "queued")
"""Due, not sent: held back by the concurrency limit."""
ENGINE_QUEUE = Phase("┄", "orange", "engine queue")
PREFILL = Phase("▒", "orange", "prefill")
TO_FIRST_TOKEN = Phase("░", "orange", "to first token")
"""From sent to first token, as far as the server does not report its own times."""
DECODE = Phase("█", "sky", "decode")
STALL = Phase("╍", "yellow", "stall")
PREEMPTED = Phase("▚", "vermilion", "preempted")
"""A stall during which the engine preempted requests."""


@dataclass(frozen=True, slots=True)
class Span:
    """One phase from `start` to `end`, seconds of the run."""

    start: float
    end: float
    phase: Phase

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


def unknown_preemptions(start: float, until: float) -> float:  # noqa: ARG001
    """Return the preemptions of an engine that does not export them."""
    return math.nan


def preemptions_between(history: TickHistory, start: float, until: float) -> float:
    """Preemptions in the ticks from the one that contains `start` to the last one that ended by `until`."""
    first, stop = history.first_from(start - TICK_SECONDS), history.up_to(until)
    counts = history.column("preemptions", start=first, stop=max(first, stop))
    return math.nan if np.isnan(counts).all() else float(np.nansum(counts))


def ended_at(record: RequestRecord) -> float:
    """Return the end of a request, or the last known time of one without an end; seconds."""
    if record.done_at is not None:
        return record.done_at
    if record.first_token_at is not None:
        return record.first_token_at
    return record.due if record.sent is None else record.sent


def spans(record: RequestRecord, at: float, *, preemptions: Preemptions = unknown_preemptions) -> list[Span]:
    """Return the phases up to the time `at`, in order, without gaps between them; at least one, which may be empty."""
    ended = ended_at(record)
    end = min(ended, at)
    sent = ended if record.sent is None else record.sent
    first = ended if record.first_token_at is None else record.first_token_at
    found = [Span(record.due, min(sent, end), QUEUED)]
    if record.sent is not None and sent <= at:
        found += _before_first_token(record, sent, min(first, end), ended=ended <= at)
    if record.first_token_at is not None and first <= at:
        found += _decode(record, first, end, at, preemptions)
    return found


def _before_first_token(record: RequestRecord, sent: float, until: float, *, ended: bool) -> list[Span]:
    """The server reports its own times with the end of the request."""
    found, start = [], sent
    for seconds, phase in ((record.server_queue, ENGINE_QUEUE), (record.server_prefill, PREFILL)) if ended else ():
        if seconds is not None and seconds > 0:
            found.append(Span(start, min(start + seconds, until), phase))
            start = found[-1].end
    return [*found, Span(start, until, TO_FIRST_TOKEN)]


def _decode(record: RequestRecord, first: float, end: float, at: float, preemptions: Preemptions) -> list[Span]:
    times = record.chunk_times[: int(np.searchsorted(record.chunk_times, end, side="right"))]
    edges = [*times.tolist(), end]
    gaps = np.diff(edges)
    if gaps.max(initial=0.0) <= SHORTEST_PAUSE:
        return [Span(first, end, DECODE)]
    median = float(np.median(gaps[:-1])) if gaps.size > 1 else math.inf
    longest = max(PAUSE_FACTOR * median, SHORTEST_PAUSE)
    found, start = [], first
    for number in np.flatnonzero(gaps > longest).tolist():
        low, high = edges[number], edges[number + 1]
        during = preemptions(low, min(high + TICK_SECONDS, at))
        found += [Span(start, low, DECODE), Span(low, high, PREEMPTED if during > 0 else STALL)]
        start = high
    return [*found, Span(start, end, DECODE)] if not found or end > start else found
