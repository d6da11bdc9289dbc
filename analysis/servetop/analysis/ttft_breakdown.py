"""The breakdown of the time to first token, as means over a window: client, network, engine, and the rest.

It combines two sets of requests: the client's times and the engine's TTFT belong to requests whose first token arrived
in the window, but an engine reports queue and prefill time when a request ends. In a steady state both agree. If queue
and prefill do not add up to the time at the engine, they belong to other requests. Then the queue is the rest of that
time, as far as the requests waiting at the engine account for it by Little's law; without such, it is not split.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.tick import TICK_SECONDS

_UNSPLIT_SHARE, _LAGGING_SHARE, _LEAST_SECONDS = 0.25, 0.05, 0.01
"""Queue and prefill that differ from the time at the engine by more than the first fraction (and the time) are not used
to split it; beyond the second, the requests waiting at the engine are asked first."""
_ENOUGH = 0.5
"""Fraction of a time that Little's law must account for, so that all of it is the queue."""
_OLDEST_TICKS = 2400
"""Ticks in which requests that wait for their first token are looked for: ten minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TtftBreakdown:
    """Means in seconds, NaN if unknown. The known parts and `unexplained` add up to `total`."""

    total: float = math.nan
    """First token - due."""
    client_queue: float = math.nan
    """Sent - due: time in the client's queue at the concurrency limit, and schedule slip."""
    network: float = math.nan
    """Client TTFT - engine TTFT: network round trip, and server time before the engine starts its timer."""
    engine_queue: float = math.nan
    prefill: float = math.nan
    at_engine: float = math.nan
    """Queue and prefill together if they cannot be split, when both are NaN."""
    unexplained: float = math.nan
    """The remainder, never negative; all of the engine's time if it exports neither queue nor prefill."""
    queue_from: float = math.nan
    """Mean requests waiting at the engine, if `engine_queue` was computed from them; NaN if the engine reported it."""
    pending: int = 0
    """Requests that wait for their first token: at least, because failed ones are taken for some of them."""
    pending_age: float = math.nan
    """Mean seconds since these were sent, in the order of sending: their TTFT will be longer."""
    requests: int = 0
    """Requests whose first token arrived in the window."""

    @property
    def has_waiting(self) -> bool:
        """Whether requests wait for their first token for a tick or more on average: fewer say nothing."""
        return self.pending > 0 and self.pending_age >= TICK_SECONDS

    @property
    def known(self) -> float:
        """The sum of the known parts."""
        return sum(part for part in self.parts if not math.isnan(part))

    @property
    def is_split(self) -> bool:
        """Whether the time at the engine is split into queue and prefill."""
        return math.isnan(self.at_engine)

    @property
    def parts(self) -> tuple[float, ...]:
        """The parts in the order of a request's path; queue and prefill are one part if not split."""
        engine = (self.engine_queue, self.prefill) if self.is_split else (self.at_engine,)
        return (self.client_queue, self.network, *engine)


def ttft_breakdown(history: TickHistory, start: int, stop: int) -> TtftBreakdown:
    """Return the breakdown over ticks `start` to `stop`."""
    requests, ttft = _client_mean(history, "ttft", start, stop)
    pending, age = _pending(history, stop)
    if not requests:
        return TtftBreakdown(pending=pending, pending_age=age)
    _, total = _client_mean(history, "ttft_due", start, stop)
    lag = _lag(history, stop)
    _, lagged_ttft = _client_mean(history, "ttft", max(start - lag, 0), stop - lag)
    at_engine = _mean(history, "engine_first_token_seconds", "engine_first_tokens", start, stop)
    parts = TtftBreakdown(
        total=total,
        client_queue=max(total - ttft, 0.0),
        network=math.nan if math.isnan(at_engine) or math.isnan(lagged_ttft) else max(lagged_ttft - at_engine, 0.0),
        engine_queue=_reported_or_mean(history, "queue", "engine_queued", start, stop),
        prefill=_reported_or_mean(history, "prefill", "engine_prefilled", start, stop),
        requests=requests,
        pending=pending,
        pending_age=age,
    )
    parts = _with_queue_of_waiting(parts, ttft, history, start, stop)
    parts = _unsplit_if_inconsistent(parts, ttft if math.isnan(at_engine) else at_engine, client_ttft=ttft)
    parts = _without_excess(parts)
    return replace(parts, unexplained=max(parts.total - parts.known, 0.0))


def without_unknown_wait(parts: TtftBreakdown, *, imported: bool) -> TtftBreakdown:
    """Return the parts; an imported run whose file has no waits at the client does not show that there were none."""
    return replace(parts, client_queue=math.nan) if imported and parts.client_queue == 0 else parts


def _with_queue_of_waiting(
    parts: TtftBreakdown, client_ttft: float, history: TickHistory, start: int, stop: int
) -> TtftBreakdown:
    """Return the parts with the queue time of the requests that were waiting, if reported times miss the window's."""
    at_engine = max(client_ttft - (0.0 if math.isnan(parts.network) else parts.network), 0.0)
    reported = [part for part in (parts.engine_queue, parts.prefill) if not math.isnan(part)]
    complete = len(reported) == 2 and abs(sum(reported) - at_engine) <= max(_LAGGING_SHARE * at_engine, _LEAST_SECONDS)
    waiting, waited = _littles_law_wait(history, history.first_from(history.ticks[start].start - at_engine), stop)
    if complete or not waited > 0:
        return parts
    prefill = min(parts.prefill, at_engine)
    left = at_engine if math.isnan(prefill) else at_engine - prefill
    queue = left if waited >= _ENOUGH * left and not math.isnan(prefill) else min(waited, left)
    return replace(parts, engine_queue=queue, prefill=prefill, queue_from=waiting)


def _littles_law_wait(history: TickHistory, start: int, stop: int) -> tuple[float, float]:
    """Return mean requests waiting at the engine, and these / first tokens per second, in seconds; NaN if unknown."""
    waiting = history.column("waiting", start=start, stop=stop)
    counts = (history.column(name, start=start, stop=stop) for name in ("engine_first_tokens", "first_tokens"))
    admitted = next((total for each in counts if (total := float(np.nansum(each))) > 0), 0.0)
    if np.isnan(waiting).all() or not admitted:
        return math.nan, math.nan
    mean = float(np.nanmean(waiting))
    return mean, mean * (stop - start) * TICK_SECONDS / admitted


def _without_excess(parts: TtftBreakdown) -> TtftBreakdown:
    """Return parts that are at most the total: the excess is taken from the engine's parts, then from the network."""
    excess = parts.known - parts.total
    changes: dict[str, Any] = {}
    for name in ("engine_queue", "prefill", "at_engine", "network"):
        value = getattr(parts, name)
        if excess > 0 and not math.isnan(value):
            changes[name] = max(value - excess, 0.0)
            excess -= value - changes[name]
    return replace(parts, **changes)


def _pending(history: TickHistory, stop: int) -> tuple[int, float]:
    """Return how many requests wait for their first token, the last ones sent, and the mean seconds since then."""
    sent, started, failed, cancelled = (
        history.total(name, stop=stop) for name in ("sent", "first_tokens", "failed", "cancelled")
    )
    waiting = int(np.nan_to_num(sent - started - failed - cancelled))
    if waiting <= 0 or not started > 0:
        return 0, math.nan
    first = max(stop - _OLDEST_TICKS, 0)
    latest = history.column("sent", start=first, stop=stop)[::-1]
    before = np.cumsum(latest) - latest
    counted = np.clip(waiting - before, 0, latest)
    ages = np.arange(latest.size) * TICK_SECONDS
    return waiting, float((counted * ages).sum() / counted.sum()) if counted.sum() else math.nan


def _unsplit_if_inconsistent(parts: TtftBreakdown, at_engine: float, *, client_ttft: float) -> TtftBreakdown:
    """Return the parts, with the time at the engine unsplit if queue and prefill do not add up to it.

    Without an engine TTFT only an excess can be detected, because a deficit may be network time.
    """
    if not math.isnan(parts.queue_from):
        return parts
    reported = [part for part in (parts.engine_queue, parts.prefill) if not math.isnan(part)]
    has_engine_ttft = not math.isnan(parts.network)
    excess = sum(reported) - at_engine
    tolerance = max(_UNSPLIT_SHARE * at_engine, _LEAST_SECONDS)
    # if only one of them is reported, the deficit is the other
    deficient = has_engine_ttft and len(reported) != 1 and excess < -tolerance
    if not deficient and excess <= tolerance:
        return parts
    network = 0.0 if math.isnan(parts.network) else parts.network
    unsplit = max(min(at_engine, client_ttft - network), 0.0)
    return replace(parts, engine_queue=math.nan, prefill=math.nan, at_engine=unsplit)


def _client_mean(history: TickHistory, name: str, start: int, stop: int) -> tuple[int, float]:
    """Return count and mean in seconds; NaN if there is none."""
    histograms = [getattr(tick.client, name) for tick in history.ticks[start:stop]]
    count = sum(each.count for each in histograms if each.buckets.size)
    return count, math.fsum(each.total for each in histograms) / count if count else math.nan


def _reported_or_mean(history: TickHistory, part: str, count: str, start: int, stop: int) -> float:
    """Return the mean of times reported with each response, else of the engine's sums, which include other clients."""
    reported, mean = _client_mean(history, f"server_{part}", start, stop)
    return mean if reported else _mean(history, f"engine_{part}_seconds", count, start, stop)


def _lag(history: TickHistory, stop: int) -> int:
    """Return 1 if a tick's engine metrics were scraped near its start, and so cover the ticks before it; else 0.

    First tokens arrive in bursts; while TTFT grows, one burst more or less in the window makes a large difference.
    """
    sample = history.ticks[stop - 1].engine
    if sample is None:
        return 0
    return int(history.ticks[stop - 1].end - (sample.scrape_start + sample.scrape_end) / 2 > TICK_SECONDS / 2)


def _mean(history: TickHistory, seconds: str, count: str, start: int, stop: int) -> float:
    """Return the mean over the window; NaN if not exported, or if nothing was counted."""
    total, counted = (float(np.nansum(history.column(name, start=start, stop=stop))) for name in (seconds, count))
    return total / counted if counted > 0 else math.nan
