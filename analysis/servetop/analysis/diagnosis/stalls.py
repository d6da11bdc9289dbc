"""Finds the times without a token: two seconds while requests are in flight, or one that no prefill explains."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from servetop.analysis.diagnosis.marks import LOOKBACK, Marks, marks
from servetop.analysis.diagnosis.signals import Signals
from servetop.analysis.diagnosis.trailing import quotient, ticks_of, trailing_max, trailing_sum
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.tick import TICK_SECONDS

STALL_SECONDS = 2.0
"""Seconds without any token while requests are in flight."""
PAUSE_SECONDS = 1.0
"""The same for requests that had tokens before, if the prompts that follow do not explain it."""
Period = tuple[float, float]
"""Begin and end, seconds of the run."""
_PREFILL = 0.5
"""Least prompt tokens/s of such a time, relative to the fastest prefill before, that explain it."""
_USUAL = 0.1
"""Fraction of the ticks in shorter times without a token from which tokens usually arrive that far apart."""


def stalled(signals: Signals) -> Marks:
    """No token arrives while requests are in flight, after some had arrived under the same load.

    A pause of less than STALL_SECONDS is known when it has ended.
    """
    started = trailing_sum(signals.output_tokens, ticks_of(LOOKBACK)) > 0
    silent = started & (signals.in_flight > 0) & ~(signals.output_tokens > 0)
    least = ticks_of(STALL_SECONDS) + 1
    run = _run_length(silent)
    before = _shifted(run)
    short = ~silent & (before >= ticks_of(PAUSE_SECONDS)) & (before < least)
    short &= _decoding(signals) & ~_prefilled(signals, before) & ~_usual(signals, silent, before)
    return marks(
        opens=(run >= least) | short,
        closes=~silent | (run == 1),  # one that is known when it has ended closes with the next tick
        worst=run * TICK_SECONDS,
        active=silent & (run > 1),
        begin=lambda position: position + 1 - int(run[position]) if run[position] else position - int(before[position]),
    )


def is_prefill(history: TickHistory, begin: float, end: float) -> bool:
    """Whether the prompts that follow a time without a token, in seconds of the run, explain it.

    The fastest prefill of the minute before it tells; without one, they do.
    """
    after = history.first_from(end)
    first = max(after - ticks_of(LOOKBACK), 0)
    clients = [tick.client for tick in history.ticks[first : after + 1]]
    tokens = np.array([each.prompt_tokens for each in clients], dtype=np.float64)
    times = np.array([each.ttft.total for each in clients], dtype=np.float64)
    best = quotient(tokens, times)[: after - first].max(initial=0.0)
    return bool(tokens[after - first :].sum() / (end - begin) >= _PREFILL * best)


def silences(history: TickHistory, begin: float, until: float) -> list[Period]:
    """Return all times of PAUSE_SECONDS or more without a token while requests are in flight, whatever explains them.

    Between two times, seconds of the run, that a period overlaps.
    """
    first, stop = history.first_from(begin), history.up_to(until)
    tokens, flying = (
        history.column(each, start=first, stop=max(first, stop)) for each in ("output_tokens", "in_flight")
    )
    silent = np.flatnonzero((flying > 0) & ~(tokens > 0))
    parts = np.split(silent, np.flatnonzero(np.diff(silent) > 1) + 1)
    ticks = [history.ticks[first + int(each[0])].start for each in parts if each.size >= ticks_of(PAUSE_SECONDS)]
    ends = [history.ticks[first + int(each[-1])].end for each in parts if each.size >= ticks_of(PAUSE_SECONDS)]
    return list(zip(ticks, ends, strict=True))


def joined(periods: Iterable[Period]) -> list[Period]:
    """Return the periods of time that some periods cover, in order."""
    found: list[Period] = []
    for begin, until in sorted(periods):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        else:
            found.append((begin, until))
    return found


def due_in_pauses(signals: Signals) -> FloatArray:
    """Return the requests that were due in times of PAUSE_SECONDS or more without a token.

    They count from the tick on in which a time is that long. None do if responses are not streamed.
    """
    silent = (signals.in_flight > 0) & ~(signals.output_tokens > 0) & ~np.isnan(signals.awaiting)
    run, least = _run_length(silent), ticks_of(PAUSE_SECONDS)
    begun = np.where(run == least, trailing_sum(signals.due, least), 0.0)
    return np.where(run > least, signals.due, begun)


def _run_length(condition: BoolArray) -> FloatArray:
    """Return the number of consecutive ticks, up to each, in which a condition held."""
    position = np.arange(1, condition.size + 1)
    last_break = np.maximum.accumulate(np.where(condition, 0, position))
    return np.asarray(position - last_break, dtype=np.float64)


def _shifted(values: FloatArray) -> FloatArray:
    """Return the value of the tick before each; 0 before the first."""
    return np.concatenate([np.zeros(min(values.size, 1)), values[:-1]])


def _decoding(signals: Signals) -> BoolArray:
    """Whether a request in flight had its first token before the tick."""
    return np.asarray(_shifted(signals.in_flight - signals.awaiting) > 0)


def _prefilled(signals: Signals, before: FloatArray) -> BoolArray:
    """Whether the prompts whose first token ends `before` ticks without one took that time.

    A mean prompt is computed within its TTFT, so that the shortest of the minute before bounds the speed from below.
    """
    tokens = signals.prompt_tokens
    speed = quotient(tokens, signals.served_ttft)
    best = trailing_max(_shifted(speed), ticks_of(LOOKBACK))
    return np.asarray(quotient(tokens, TICK_SECONDS * before) >= _PREFILL * np.maximum(best, 1e-9))


def _usual(signals: Signals, silent: BoolArray, before: FloatArray) -> BoolArray:
    """Whether many tokens of the minute before were far apart, as those of a slow model or a buffering proxy are."""
    apart = np.where(~silent & (before < ticks_of(PAUSE_SECONDS)), before, 0.0)
    loaded = trailing_sum(signals.in_flight > 0, ticks_of(LOOKBACK))
    return np.asarray(trailing_sum(apart, ticks_of(LOOKBACK)) > _USUAL * loaded)


def generates(history: TickHistory, begin: float, end: float) -> bool:
    """Whether the engine's own counter of generated tokens grows on pages that were read between two times, seconds.

    False if it is not exported, or if fewer than two pages were read then.
    """
    ticks = history.ticks[history.first_from(begin) : history.up_to(end)]
    samples = [tick.engine for tick in ticks if tick.engine is not None and tick.engine.scrape_start >= begin]
    totals = [each.generation_tokens_total for each in samples if each.generation_tokens_total is not None]
    return bool(totals) and totals[-1] > totals[0]
