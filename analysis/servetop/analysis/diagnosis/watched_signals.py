"""The rules that need no client: those by which the episodes of a watched server are found, and their inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import replace

import numpy as np

from servetop.analysis.diagnosis.detectors import failing, kv_full, preempting, throttled
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.marks import WINDOW, Marks
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE, batch_full, queueing_of_others
from servetop.analysis.diagnosis.signals import LEAST_FULL, Signals
from servetop.analysis.diagnosis.trailing import or_zero, quotient, steps
from servetop.analysis.engine_gauges import KV_FULL, KV_HIGH
from servetop.analysis.series.page_rates import LONGEST_UNREAD, Pages
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.tick import TICK_SECONDS

_LONGER = 3.0
"""Blocks that a waiting prompt may need, as a multiple of those that a running sequence holds on average."""


def on_two_pages(rule: Callable[[Signals], Marks], *, rare_only: bool = False) -> Callable[[Signals], Marks]:
    """Return a rule whose episodes open only if the page before shows the same: one page is only of its moment.

    Of a rare source also not before its counters have had a rate for a whole window; `rare_only`: of others at once.
    """

    def found(signals: Signals) -> Marks:
        marks = rule(signals)
        if not marks.opens.any():
            return marks
        arrived, gap = signals.page_arrived, signals.page_gap
        before = marks.active[np.maximum(arrived - 1, 0)] & (arrived > 0)
        since_first = np.arange(len(signals)) - np.argmax(~np.isnan(signals.scrape_end))
        counted = since_first * TICK_SECONDS >= gap + WINDOW
        often = gap <= LONGEST_UNREAD
        confirmed = before & (counted | often)
        if rare_only:  # the seconds before a page may be those of the page before, which is spread over them
            confirmed = often | (confirmed & marks.active[arrived])
        return replace(marks, opens=marks.opens & confirmed)

    return found


WATCHED_DETECTORS: Mapping[EpisodeKind, Callable[[Signals], Marks]] = {
    EpisodeKind.FAILING: on_two_pages(failing, rare_only=True),
    EpisodeKind.KV: kv_full,
    EpisodeKind.PREEMPTIONS: preempting,
    EpisodeKind.BATCH: on_two_pages(batch_full),
    EpisodeKind.QUEUE: on_two_pages(queueing_of_others),
    EpisodeKind.THROTTLED: throttled,
}
"""The rule of each kind that the metrics of an engine and of its GPU show."""


def may_open(signals: Signals) -> Set[EpisodeKind]:
    """Return the kinds of which an episode can open in these ticks: the rules of others need not be computed."""
    waits, preempted = bool((signals.waiting > SHORT_QUEUE).any()), bool((signals.preemptions > 0).any())
    possible = {
        EpisodeKind.FAILING: (signals.failed > 0).any(),
        EpisodeKind.KV: (waits or preempted) and (signals.kv >= LEAST_FULL).any(),
        EpisodeKind.PREEMPTIONS: preempted,
        EpisodeKind.BATCH: waits,
        EpisodeKind.QUEUE: waits,
        EpisodeKind.THROTTLED: signals.throttled.any(),
    }
    return {kind for kind, found in possible.items() if found}


def of_engine(signals: Signals, history: TickHistory, start: int, stop: int) -> Signals:
    """Return the signals of ticks `start` to `stop` with the engine's counts in place of the client's.

    As many requests complete as begin to be served: an engine exports the time of the first token, but not always the
    number of those that ended. Without counters of failed requests none fails. The lengths of waiting prompts are not
    exported: while requests wait and the cache is full, the next prompt is assumed to need _LONGER times what a running
    sequence holds, but not more than 1 - KV_HIGH.
    """
    pages = Pages.of(history, start=start, stop=stop)
    gaps = steps(pages.written, math.nan)
    rare = gaps > LONGEST_UNREAD

    def counted(name: str) -> FloatArray:
        counts = or_zero(history.column(name, start=pages.first, stop=stop))
        return (_spread(pages, counts, gaps, rare) if rare.any() else counts)[start - pages.first :]

    served = counted("engine_first_tokens")
    exhausted = (signals.kv >= KV_FULL) & (signals.waiting > SHORT_QUEUE)
    held = quotient(or_zero(signals.kv), or_zero(signals.running))
    return replace(
        signals,
        output_tokens=counted("engine_output_tokens"),
        prompt_tokens=counted("engine_prompt_tokens"),
        first_tokens=served,
        ok=served,
        failed=counted("engine_failed"),
        ended=counted("engine_ended"),
        preemptions=np.where(np.isnan(signals.preemptions), math.nan, counted("preemptions")),
        needed=np.where(exhausted, np.minimum(_LONGER * held, 1 - KV_HIGH), 0.0),
    )


def _spread(pages: Pages, counts: FloatArray, gaps: FloatArray, rare: BoolArray) -> FloatArray:
    """Return what a counter grew by in each tick; what a rare page counts is spread over as long as it counts.

    That is the time after it, because no tick may depend on a later one.
    """
    page, rates = pages.page, np.where(rare, counts[pages.places] / gaps * TICK_SECONDS, 0.0)
    since = (np.arange(counts.size) - pages.places[page]) * TICK_SECONDS
    held = rare[page] & (since >= 0) & (since < gaps[page])
    return np.where(held, rates[page], np.where(rare[page], 0.0, counts))
