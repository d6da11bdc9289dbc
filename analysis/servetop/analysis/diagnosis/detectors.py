"""The rules that open and close episodes, each over the seconds before a tick.

Every rule has two conditions, so that an episode neither starts by chance nor ends while its cause lasts: a stricter
one to open it, and a weaker one that must be violated for a while to close it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.marks import LOOKBACK, WINDOW, Marks, marks
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE, awaiting, batch_full, piling_up, queueing
from servetop.analysis.diagnosis.signals import Signals
from servetop.analysis.diagnosis.stalls import stalled
from servetop.analysis.diagnosis.trailing import (
    first_in,
    or_zero,
    page_gaps,
    quotient,
    steps,
    ticks_of,
    trailing_all,
    trailing_max,
    trailing_sum,
)
from servetop.analysis.engine_gauges import KV_HIGH
from servetop.core.arrays import BoolArray, FloatArray

FAILED_SHARE = 0.05
"""Fraction of the requests that ended in the window."""
LATE_SHARE = 0.01
"""Fraction of late requests at which the 99th percentile of the slip is at its limit."""
_LONGER, _STILL_LONGER = 2.0, 1.3
"""Mean prompt relative to the minute before, from which prompts count as long, and below which no longer."""
_SLOWER = 2.0
"""Mean TTFT relative to the minute before."""
_SIGNIFICANT = 4.0
"""Standard errors by which the mean prompt is above the usual one."""
_LOG_SIGNIFICANT = 5.0
"""The same for the logarithms of the lengths; every second of a run is tested."""
_MIN_PROMPTS = 5
_TWO_PAGES = 12.0
"""Seconds within which two metrics pages must show a full KV cache."""
_MIN_EVENTS = 3
"""Minimum failed or late requests; fewer may be random."""


def failing(signals: Signals) -> Marks:
    """More than FAILED_SHARE of the requests that end fail."""
    window = ticks_of(WINDOW)
    failed = trailing_sum(signals.failed, window)
    ended = trailing_sum(signals.ended, window)
    share = np.divide(failed, ended, out=np.zeros(failed.shape), where=ended > 0)
    return marks(
        opens=(failed >= _MIN_EVENTS) & (share >= FAILED_SHARE),
        closes=trailing_sum(signals.failed > 0, ticks_of(5)) == 0,
        worst=share,
        amount=signals.failed,
        active=signals.failed > 0,
    )


def client_late(signals: Signals) -> Marks:
    """The client sends requests late, or reads their tokens late, beyond the limits of the trust meter."""
    window = ticks_of(WINDOW)
    late, sent = trailing_sum(signals.late, window), trailing_sum(signals.sent, window)
    share = np.divide(late, sent, out=np.zeros(late.shape), where=sent > 0)
    lag = trailing_sum(signals.lagging, window) / window
    loaded = signals.in_flight > 0
    active = (signals.late > 0) | ((signals.lagging > LATE_SHARE) & loaded)
    return marks(
        opens=((late >= _MIN_EVENTS) & (share > LATE_SHARE)) | ((lag > LATE_SHARE) & loaded),
        closes=trailing_sum(active, ticks_of(5)) == 0,
        worst=np.maximum(share, lag),
        active=active,
    )


def kv_full(signals: Signals) -> Marks:
    """The KV cache is full while requests wait for it, for a quarter of four seconds and on two pages, or preempted.

    Its usage swings as requests end; a full cache for a moment is not what requests wait for.
    """
    window = ticks_of(WINDOW)
    waits, preempted = signals.waiting > SHORT_QUEUE, trailing_sum(signals.preemptions, window)
    full = signals.kv_is_full
    held, recent = trailing_sum(full & waits, ticks_of(4)) >= ticks_of(1), trailing_sum(full, ticks_of(2)) > 0
    paged = steps(signals.scrape_end, math.nan) != 0
    again = trailing_sum(full & waits & paged, ticks_of(_TWO_PAGES)) >= 2
    pressed = recent & ((trailing_all(waits, ticks_of(1)) & held & again) | (preempted > 1))
    relaxed = (trailing_sum(waits, ticks_of(5)) == 0) & (preempted == 0)
    return marks(
        opens=pressed,
        closes=((trailing_max(signals.kv, window) < KV_HIGH) & (trailing_sum(full, window) == 0)) | relaxed,
        worst=or_zero(signals.kv),
        active=full & (waits | (preempted > 0)),
    )


def preempting(signals: Signals) -> Marks:
    """The engine preempts requests; a single preemption in ten seconds may be random."""
    window = ticks_of(WINDOW)
    count = trailing_sum(signals.preemptions, window)
    longest = trailing_max(page_gaps(signals.scrape_end), window)  # a page counts what happened since the one before
    return marks(
        opens=count >= 2,
        closes=count == 0,
        worst=count / np.maximum(WINDOW, longest),
        amount=or_zero(signals.preemptions),
        active=signals.preemptions > 0,
    )


def long_prompts(signals: Signals) -> Marks:
    """The prompts are significantly longer than during the minute before, and so is TTFT."""
    window = ticks_of(WINDOW)
    counts, tokens = signals.first_tokens, np.where(signals.first_tokens > 0, signals.prompt_tokens, 0.0)
    sources = {"n": counts, "x": tokens, "t": signals.ttft, "xx": quotient(tokens**2, counts), "k": counts > 0}
    recent, past = _recent_and_past(sources)
    usual, now = quotient(past["x"], past["n"]), quotient(recent["x"], recent["n"])
    deviation = np.sqrt(quotient(np.maximum(past["xx"] - usual * past["x"], 0.0), past["k"]))
    error = deviation * np.sqrt(1 / np.maximum(recent["n"], 1) + 1 / np.maximum(past["n"], 1))
    longer = (now >= _LONGER * usual) & (now - usual >= _SIGNIFICANT * error)
    slower = quotient(recent["t"], recent["n"]) >= _SLOWER * quotient(past["t"], past["n"])
    enough = (past["n"] >= np.maximum(2 * _MIN_PROMPTS, recent["n"] / 2)) & (recent["n"] >= _MIN_PROMPTS)
    long = tokens > _LONGER * usual * counts
    return marks(
        opens=enough & longer & slower & _most_are_longer(tokens, counts),
        closes=(recent["n"] > 0) & (now < _STILL_LONGER * usual),
        worst=now,
        active=long,
        begin=lambda position: first_in(long, position, window),
    )


def _recent_and_past(sources: Mapping[str, FloatArray | BoolArray]) -> tuple[dict[str, FloatArray], ...]:
    """Return the sums over WINDOW, and those over LOOKBACK before it."""
    window, total = ticks_of(WINDOW), ticks_of(WINDOW + LOOKBACK)
    recent = {name: trailing_sum(each, window) for name, each in sources.items()}
    return recent, {name: trailing_sum(each, total) - recent[name] for name, each in sources.items()}


def _most_are_longer(tokens: FloatArray, counts: FloatArray) -> BoolArray:
    """Whether the mean logarithm of the lengths is significantly larger too, which a few very long prompts are not."""
    means = np.log(np.where(tokens > 0, quotient(tokens, counts), 1.0))
    recent, past = _recent_and_past({"k": tokens > 0, "l": means, "ll": means**2})
    usual = quotient(past["l"], past["k"])
    variance = np.maximum(quotient(past["ll"], past["k"]) - usual**2, 0.0)
    error = np.sqrt(variance * (1 / np.maximum(recent["k"], 1) + 1 / np.maximum(past["k"], 1)))
    return np.asarray(quotient(recent["l"], recent["k"]) - usual >= _LOG_SIGNIFICANT * error)


def throttled(signals: Signals) -> Marks:
    """A GPU lowers its clocks for at least a second of two."""
    on = signals.throttled
    return marks(
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
    EpisodeKind.AWAITING: awaiting,
    EpisodeKind.IN_FLIGHT: piling_up,
    EpisodeKind.LONG_PROMPTS: long_prompts,
    EpisodeKind.THROTTLED: throttled,
}
"""The rule of each kind; errors in the log are found in its lines."""
