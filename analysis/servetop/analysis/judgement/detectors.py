"""The rules that open and close episodes, each over the seconds before a tick.

Every rule has two conditions, so that an episode neither starts by chance nor ends while its cause lasts: a stricter
one to open it, and a weaker one that must be violated for a while to close it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from servetop.analysis.engine_gauges import KV_HIGH
from servetop.analysis.judgement.episode import EpisodeKind
from servetop.analysis.judgement.signals import (
    Signals,
    first_after,
    first_in,
    ticks_of,
    trailing_all,
    trailing_max,
    trailing_min,
    trailing_sum,
)
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.tick import TICK_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Marks:
    """What one rule found, for each tick; arrays of shape (ticks,)."""

    opens: BoolArray
    """An episode is open from this tick on."""
    closes: BoolArray
    """An episode that is open is closed."""
    worst: FloatArray
    """The value whose maximum is the episode's worst."""
    amount: FloatArray
    """Counts that add up to the episode's total."""
    begin: Callable[[int], int]
    """Returns the tick at which an episode that is detected at a tick began."""
    active: BoolArray
    """Ticks in which the condition itself held: an episode ends with the last of them."""


WINDOW = 10.0
"""Seconds of the statistics that panels show, over which rates and fractions are computed."""
LOOKBACK = 60.0
"""Seconds before its detection in which the beginning of an episode is searched."""
FAILED_SHARE = 0.05
"""Fraction of the requests that ended in the window."""
LATE_SHARE = 0.01
"""Fraction of late requests at which the 99th percentile of the slip is at its limit."""
BATCH_FULL = 0.97
"""Fraction of max_num_seqs that counts as full, because a slot is briefly empty between two requests."""
SHORT_QUEUE = 2
"""Up to this many waiting requests are about to join the batch."""
STALL_SECONDS = 2.0
"""Seconds without any token while requests are in flight."""
QUEUE_SECONDS = 0.5
"""Waiting time, as waiting requests / throughput, from which a queue is an episode."""
_QUEUE_LASTS = 3.0
"""Seconds that a queue must last; bursts of random arrivals are shorter."""
_BREAK = 0.5
"""Seconds without a queue that separate one from the next."""
_LONGER, _STILL_LONGER = 2.0, 1.3
"""Mean prompt relative to the minute before, from which prompts count as long, and below which no longer."""
_SLOWER = 2.0
"""Mean TTFT relative to the minute before."""
_SIGNIFICANT = 4.0
"""Standard errors by which the mean prompt is above the usual one."""
_MIN_PROMPTS = 5
_MIN_EVENTS = 3
"""Minimum failed or late requests; fewer may be random."""


def _marks(
    *,
    opens: BoolArray,
    closes: BoolArray,
    worst: FloatArray,
    active: BoolArray,
    amount: FloatArray | None = None,
    begin: Callable[[int], int] | None = None,
) -> Marks:
    window = ticks_of(WINDOW)
    return Marks(
        opens=opens,
        closes=closes & ~opens,
        worst=worst,
        amount=np.zeros(opens.shape) if amount is None else amount,
        begin=(lambda position: first_in(active, position, window)) if begin is None else begin,
        active=active,
    )


def failing(signals: Signals) -> Marks:
    """More than FAILED_SHARE of the requests that end fail."""
    window = ticks_of(WINDOW)
    failed = trailing_sum(signals.failed, window)
    ended = failed + trailing_sum(signals.ok, window)
    share = np.divide(failed, ended, out=np.zeros(failed.shape), where=ended > 0)
    return _marks(
        opens=(failed >= _MIN_EVENTS) & (share >= FAILED_SHARE),
        closes=trailing_sum(signals.failed, ticks_of(5)) == 0,
        worst=share,
        amount=signals.failed,
        active=signals.failed > 0,
    )


def stalled(signals: Signals) -> Marks:
    """No token arrives while requests are in flight, after some had arrived under the same load."""
    started = trailing_sum(signals.output_tokens, ticks_of(LOOKBACK)) > 0
    silent = started & (signals.in_flight > 0) & ~(signals.output_tokens > 0)
    least = ticks_of(STALL_SECONDS) + 1
    run = _run_length(silent)
    return _marks(
        opens=run >= least,
        closes=~silent,
        worst=run * TICK_SECONDS,
        active=silent,
        begin=lambda position: position + 1 - int(run[position]),
    )


def client_late(signals: Signals) -> Marks:
    """The client sends requests late, or reads their tokens late, beyond the limits of the trust meter."""
    window = ticks_of(WINDOW)
    late, sent = trailing_sum(signals.late, window), trailing_sum(signals.sent, window)
    share = np.divide(late, sent, out=np.zeros(late.shape), where=sent > 0)
    lag = trailing_sum(signals.lagging, window) / window
    loaded = signals.in_flight > 0
    active = (signals.late > 0) | ((signals.lagging > LATE_SHARE) & loaded)
    return _marks(
        opens=((late >= _MIN_EVENTS) & (share > LATE_SHARE)) | ((lag > LATE_SHARE) & loaded),
        closes=trailing_sum(active, ticks_of(5)) == 0,
        worst=np.maximum(share, lag),
        active=active,
    )


def kv_full(signals: Signals) -> Marks:
    """The KV cache is full while requests wait for it or are preempted; its usage swings as requests end."""
    window = ticks_of(WINDOW)
    waits, preempts = signals.waiting > SHORT_QUEUE, trailing_sum(signals.preemptions, window) > 1
    full = signals.kv_is_full
    recent = trailing_sum(full, ticks_of(2)) > 0
    pressed = recent & (trailing_all(waits, ticks_of(1)) | preempts)
    relaxed = (trailing_sum(waits, ticks_of(5)) == 0) & (trailing_sum(signals.preemptions, window) == 0)
    return _marks(
        opens=pressed,
        closes=((trailing_max(signals.kv, window) < KV_HIGH) & (trailing_sum(full, window) == 0)) | relaxed,
        worst=np.nan_to_num(signals.kv, nan=0.0),
        active=full & (waits | (trailing_sum(signals.preemptions, window) > 0)),
    )


def preempting(signals: Signals) -> Marks:
    """The engine preempts requests; a single preemption in ten seconds may be random."""
    window = ticks_of(WINDOW)
    count = trailing_sum(signals.preemptions, window)
    return _marks(
        opens=count >= 2,
        closes=count == 0,
        worst=count / WINDOW,
        amount=np.nan_to_num(signals.preemptions),
        active=signals.preemptions > 0,
    )


def batch_full(signals: Signals) -> Marks:
    """The batch is full while requests wait for a slot; with another batch size that is a new question."""
    full = (signals.running >= BATCH_FULL * signals.batch) & (signals.waiting > SHORT_QUEUE)
    least = ticks_of(2)
    resized = np.diff(signals.batch, prepend=signals.batch[:1]) > 0
    return _marks(
        opens=trailing_all(full, least),
        closes=(trailing_sum(full, ticks_of(5)) == 0) | resized,
        worst=np.nan_to_num(signals.waiting),
        active=full,
        begin=lambda position: max(0, position + 1 - least),
    )


def queueing(signals: Signals) -> Marks:
    """Requests of an open loop wait longer than QUEUE_SECONDS, or, without that gauge, pile up in flight."""
    backlog, short = signals.backlog, np.maximum(SHORT_QUEUE + 2, QUEUE_SECONDS * signals.throughput)
    long = np.where(np.isnan(backlog), 0.0, backlog) >= short
    lasting = trailing_min(backlog - short, ticks_of(_QUEUE_LASTS)) >= 0
    growing = _piles_up(signals)
    calm = (trailing_max(backlog, ticks_of(_BREAK) + 1) <= SHORT_QUEUE) & ~np.isnan(backlog) | (
        np.isnan(backlog) & ~growing
    )
    unknown = np.isnan(backlog)
    steps = ticks_of(LOOKBACK)
    return _marks(
        opens=(lasting & ~signals.closed) | growing,
        closes=np.where(
            unknown, trailing_sum(growing, ticks_of(5)) == 0, trailing_max(backlog - 0.5 * short, ticks_of(3)) <= 0
        ).astype(np.bool_),
        worst=np.where(unknown, signals.in_flight + signals.queued, np.nan_to_num(backlog)),
        active=np.where(unknown, growing, long).astype(np.bool_),
        begin=lambda position: first_after(calm, position, steps),
    )


def _piles_up(signals: Signals) -> BoolArray:
    """Whether the requests in flight of an open loop grew for twenty seconds of one stage because too few completed.

    Only where the engine does not export its queue.
    """
    span = ticks_of(20)
    level = signals.in_flight + signals.queued
    found = np.zeros(len(signals), dtype=np.bool_)
    if len(signals) <= span:
        return found
    start, middle, stop = level[:-span], level[span // 2 : -(span - span // 2)], level[span:]
    growth = stop - start
    due, done = trailing_sum(signals.due, span)[span:], trailing_sum(signals.ok, span)[span:]
    rising = (start < middle) & (middle < stop) & (signals.stage[:-span] == signals.stage[span:])
    behind = (growth >= 5) & (growth > 0.1 * due) & (done < 0.95 * due)
    found[span:] = rising & behind & np.isnan(signals.waiting[span:]) & ~signals.closed[span:]
    return found


def long_prompts(signals: Signals) -> Marks:
    """The prompts are significantly longer than during the minute before, and so is TTFT."""
    window, total = ticks_of(WINDOW), ticks_of(WINDOW + LOOKBACK)
    counts, tokens = signals.first_tokens, np.where(signals.first_tokens > 0, signals.prompt_tokens, 0.0)
    squares = _quotient(tokens**2, counts)
    recent = {name: trailing_sum(each, window) for name, each in (("n", counts), ("x", tokens), ("t", signals.ttft))}
    sources = (("n", counts), ("x", tokens), ("t", signals.ttft), ("xx", squares), ("k", counts > 0))
    past = {name: trailing_sum(each, total) - trailing_sum(each, window) for name, each in sources}
    usual, now = _quotient(past["x"], past["n"]), _quotient(recent["x"], recent["n"])
    deviation = np.sqrt(_quotient(np.maximum(past["xx"] - usual * past["x"], 0.0), past["k"]))
    longer = (now >= _LONGER * usual) & (now - usual >= _SIGNIFICANT * _quotient(deviation, np.sqrt(recent["n"])))
    slower = _quotient(recent["t"], recent["n"]) >= _SLOWER * _quotient(past["t"], past["n"])
    enough = (past["n"] >= 2 * _MIN_PROMPTS) & (recent["n"] >= _MIN_PROMPTS)
    long = tokens > _LONGER * usual * counts
    return _marks(
        opens=enough & longer & slower,
        closes=(recent["n"] > 0) & (now < _STILL_LONGER * usual),
        worst=now,
        active=long,
        begin=lambda position: first_in(long, position, window),
    )


def _quotient(a: FloatArray, b: FloatArray) -> FloatArray:
    """Divide, with 0 where the divisor is 0."""
    return np.divide(a, b, out=np.zeros(a.shape), where=b > 0)


def throttled(signals: Signals) -> Marks:
    """A GPU lowers its clocks for at least a second of two."""
    on = signals.throttled
    return _marks(
        opens=trailing_sum(on, ticks_of(2)) >= ticks_of(1),
        closes=trailing_sum(on, ticks_of(5)) == 0,
        worst=on.astype(np.float64),
        active=on,
        begin=lambda position: first_in(on, position, ticks_of(2)),
    )


DETECTORS: Mapping[EpisodeKind, Callable[[Signals], Marks]] = {
    EpisodeKind.FAILING: failing,
    EpisodeKind.STALL: stalled,
    EpisodeKind.CLIENT: client_late,
    EpisodeKind.KV: kv_full,
    EpisodeKind.PREEMPTIONS: preempting,
    EpisodeKind.BATCH: batch_full,
    EpisodeKind.QUEUE: queueing,
    EpisodeKind.LONG_PROMPTS: long_prompts,
    EpisodeKind.THROTTLED: throttled,
}
"""The rule of each kind; errors in the log are found in its lines."""


def _run_length(condition: BoolArray) -> FloatArray:
    """Return the number of consecutive ticks, up to each, in which a condition held."""
    position = np.arange(1, condition.size + 1)
    last_break = np.maximum.accumulate(np.where(condition, 0, position))
    return np.asarray(position - last_break, dtype=np.float64)
