"""The rules of full batches, and of requests that wait at the engine, for their first token, or in flight."""

from __future__ import annotations

import numpy as np

from servetop.analysis.diagnosis.marks import LOOKBACK, Marks, marks
from servetop.analysis.diagnosis.signals import Signals
from servetop.analysis.diagnosis.stalls import due_in_pauses
from servetop.analysis.diagnosis.trailing import (
    first_after,
    first_in,
    last_known,
    or_zero,
    quotient,
    steps,
    ticks_of,
    trailing_all,
    trailing_max,
    trailing_min,
    trailing_sum,
)
from servetop.analysis.engine_gauges import KV_HIGH
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.tick import TICK_SECONDS

BATCH_FULL = 0.97
"""Fraction of max_num_seqs that counts as full, because a slot is briefly empty between two requests."""
SHORT_QUEUE = 2
"""Up to this many waiting requests are about to join the batch."""
QUEUE_SECONDS = 0.5
"""Waiting time, as waiting requests / throughput, from which a queue is an episode."""
_QUEUE_LASTS = 3.0
"""Seconds that a queue must last; bursts of random arrivals are shorter."""
FLAT_SECONDS = 5.0
"""Seconds with a queue and the same number of running sequences from which that number is taken for the batch limit."""
FLAT_SHARE = 0.9
"""Fraction of them in which the number must be reached, because a slot is briefly empty between two requests."""
_FLOWING_SHARE = 0.9
"""Fraction of these ticks with output tokens; with fewer, long steps of prefill keep the number the same."""
_LIGHT_STEP = 128
"""Prompt tokens of a step that hardly lengthen it, because decoding is limited by memory bandwidth."""
_PREFILL_SHARE = 0.5
"""Fraction of the time that prefill may need otherwise."""
PILE_UP_SECONDS = 20.0
"""Seconds in which the requests in flight must grow."""
_CHANCE = 4.0
"""Standard deviations of random arrivals by which they must grow."""
_BURST_SECONDS = 5.0
"""Seconds of each period whose numbers of requests are compared."""
_BURSTY = 2.0
"""Their variance relative to that of random arrivals, above which they come in bursts."""
_SATURATED = 0.85
"""Maximum throughput of very many requests in flight / the offered tokens/s; above it the engine may keep up."""
_RAMPED = 1.25
"""Rate of a ramp relative to that of PILE_UP_SECONDS before, above which in-flight requests grow in any engine."""
_BREAK = 0.5
"""Seconds without a queue that separate one from the next."""


def batch_full(signals: Signals) -> Marks:
    """The batch is full while requests wait for a slot; with another batch size that is a new question."""
    waits = signals.waiting > SHORT_QUEUE
    full = (signals.running >= BATCH_FULL * signals.batch) & waits
    flat = (signals.running >= BATCH_FULL * signals.most_running) & waits & np.isnan(signals.batch)
    least, lasting = ticks_of(2), ticks_of(FLAT_SECONDS)
    inferred = (trailing_sum(flat, lasting) >= FLAT_SHARE * lasting) & _only_slots_are_missing(signals)
    active = full | flat
    resized = steps(signals.batch, 0.0) > 0
    refuted = np.isnan(signals.batch) & (steps(signals.most_running, 0.0) > 0)
    return marks(
        opens=trailing_all(full, least) | inferred,
        closes=(trailing_sum(active, ticks_of(5)) == 0) | resized | refuted,
        worst=or_zero(signals.waiting),
        active=active,
        begin=lambda position: (
            first_in(flat, position, lasting) if inferred[position] else max(0, position + 1 - least)
        ),
    )


def _only_slots_are_missing(signals: Signals) -> BoolArray:
    """Whether neither full KV blocks nor long steps of prefill explain a flat number of sequences."""
    lasting = ticks_of(FLAT_SECONDS)
    blocks = trailing_all((signals.kv < KV_HIGH) & ~signals.kv_is_full, lasting)
    flowing = trailing_sum(signals.output_tokens > 0, lasting) >= _FLOWING_SHARE * lasting
    preempted = trailing_sum(signals.preemptions, lasting) > 0
    return np.asarray(blocks & flowing & ~preempted & _decode_dominates(signals, lasting))


def _decode_dominates(signals: Signals, lasting: int) -> BoolArray:
    """Whether prefill takes little of the time, by the prompt tokens of each step or by TTFT without a queue.

    An engine that prefill limits also runs a constant number of sequences if all have the same length.
    """
    prompts, outputs = (trailing_sum(each, lasting) for each in (signals.prompt_tokens, signals.output_tokens))
    light = signals.most_running * quotient(prompts, outputs) <= _LIGHT_STEP
    idle = np.where(np.isinf(signals.base_ttft), 0.0, signals.base_ttft)
    busy = trailing_sum(signals.first_tokens, lasting) / FLAT_SECONDS * idle
    return np.asarray((light & (outputs > 0) & (prompts > 0)) | ((idle > 0) & (busy < _PREFILL_SHARE)))


def queueing(signals: Signals) -> Marks:
    """Requests of an open loop wait at the engine longer than QUEUE_SECONDS."""
    return _queue(signals, signals.waiting, signals.waiting, loaded=np.isfinite(last_known(signals.request_rate)))


def queueing_of_others(signals: Signals) -> Marks:
    """Return the same of a watched server, whose load is unknown: an open loop or a closed one."""
    return _queue(signals, signals.waiting, signals.waiting, loaded=np.ones(len(signals), dtype=np.bool_))


def awaiting(signals: Signals) -> Marks:
    """Return the same by the requests without a first token, where the engine does not export its queue."""
    return _queue(signals, signals.overdue, signals.awaiting, loaded=np.isfinite(last_known(signals.request_rate)))


def _queue(signals: Signals, waiting: FloatArray, shown: FloatArray, *, loaded: BoolArray) -> Marks:
    short = np.maximum(SHORT_QUEUE + 2, QUEUE_SECONDS * signals.throughput)
    known = or_zero(waiting)
    lasting = trailing_min(waiting - short, ticks_of(_QUEUE_LASTS)) >= 0
    calm = trailing_max(known, ticks_of(_BREAK) + 1) <= SHORT_QUEUE
    steps = ticks_of(LOOKBACK)
    return marks(
        opens=lasting & loaded,
        closes=trailing_max(known - 0.5 * short, ticks_of(3)) <= 0,
        worst=or_zero(shown),
        active=known >= short,
        begin=lambda position: first_after(calm, position, steps),
    )


def piling_up(signals: Signals) -> Marks:
    """The requests in flight of an open loop grow for twenty seconds of one stage, beyond what fills an idle engine.

    With n requests in flight and T output tokens/s, each request in flight waits n / T for its next token. A line
    through the two halves of the period gives the throughput of very many requests in flight: an overload needs more.
    What arrives in a pause of the engine, it has to make up for, which is no sign of its throughput.
    """
    span, growing = ticks_of(PILE_UP_SECONDS), _grows(signals)
    return marks(
        opens=growing & ~(or_zero(signals.queue) > SHORT_QUEUE),
        closes=trailing_sum(growing, ticks_of(5)) == 0,
        worst=signals.in_flight,
        active=growing,
        begin=lambda position: max(0, position - span),
    )


def _grows(signals: Signals) -> BoolArray:
    span = ticks_of(PILE_UP_SECONDS)
    half, level, found = span // 2, signals.in_flight, np.zeros(len(signals), dtype=np.bool_)
    if len(signals) <= span:
        return found
    start, middle, stop = level[:-span], level[half:-half], level[span:]
    due, done = trailing_sum(signals.due, span)[span:], trailing_sum(signals.ok, span)[span:]
    rising = (start < middle) & (middle < stop) & (signals.stage[:-span] == signals.stage[span:])
    by_chance = np.maximum(0.1 * due, _CHANCE * np.sqrt(_scatter(signals.due)[span:] * due))
    paused = trailing_sum(due_in_pauses(signals), span)[span:]
    behind = (stop - start >= 5) & (stop - start > by_chance + paused) & (done + paused < 0.95 * due)
    target = np.where(np.isfinite(signals.request_rate), signals.request_rate, 0.0)
    demand = (trailing_sum(target, span) / span * _mean_length(signals))[span:]
    constant = (target[span:] > 0) & (target[span:] <= _RAMPED * target[:-span])
    found[span:] = rising & behind & constant & (_most_tokens(signals) < _SATURATED * demand)
    return found


def _scatter(due: FloatArray) -> FloatArray:
    """Return the variance of the number of requests due in five seconds, relative to its mean; 1 without bursts.

    Neighbouring periods of the last minute are compared, so that a ramp hardly counts.
    """
    short, long = ticks_of(_BURST_SECONDS), ticks_of(LOOKBACK)
    counts = trailing_sum(due, short)
    change = np.zeros(due.shape)
    change[short:] = np.square(counts[short:] - counts[:-short])
    found = quotient(trailing_sum(change, long), 2 * trailing_sum(counts, long))
    return np.where(found > _BURSTY, found, 1.0)


def _mean_length(signals: Signals) -> FloatArray:
    """Return the mean output tokens of the requests that succeeded within two minutes; 0 without one."""
    window = 2 * ticks_of(LOOKBACK)
    return quotient(trailing_sum(signals.finished_tokens, window), trailing_sum(signals.ok, window))


def _most_tokens(signals: Signals) -> FloatArray:
    """Return the output tokens/s of very many requests in flight, for each tick after the first PILE_UP_SECONDS."""
    span = ticks_of(PILE_UP_SECONDS)
    half = span // 2
    present, tokens = (trailing_sum(each, half) / half for each in (signals.in_flight, signals.output_tokens))
    tokens = tokens / TICK_SECONDS
    delays = np.divide(present, tokens, out=np.full(present.shape, np.nan), where=tokens > 0)
    added, slower = present[span:] - present[half:-half], delays[span:] - delays[half:-half]
    result = np.full(added.shape, np.inf)
    np.divide(added, slower, out=result, where=(slower > 0) & (added > 0))
    return result
