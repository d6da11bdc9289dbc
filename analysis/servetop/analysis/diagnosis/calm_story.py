"""The lines of the story of a run whose engine was not overloaded."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from servetop.analysis.diagnosis import clauses
from servetop.analysis.diagnosis.capacity import KEPT_SHARE
from servetop.analysis.diagnosis.clauses import Part, Phrase
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.held_back import cache_filled, longest_client_queue
from servetop.analysis.diagnosis.kept_load import (
    given_up,
    hidden_misses,
    kept_up,
    share_kept,
    unserved_share,
)
from servetop.analysis.diagnosis.marks import WINDOW
from servetop.analysis.diagnosis.overload_story import sustainable_phrase
from servetop.analysis.diagnosis.passing_overload import length
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, RunVerdict
from servetop.analysis.diagnosis.story_line import LineKind, PlannedLine
from servetop.analysis.diagnosis.trailing import ticks_of
from servetop.analysis.diagnosis.wording import objectives_text, seconds
from servetop.analysis.engine_gauges import kv_usage
from servetop.core.arrays import FloatArray
from servetop.core.text.counted import counted
from servetop.core.text.formats import clock, rate_number, whole_percent

_LASTING = 5.0
"""Seconds from which a queue has lasted."""
_BREAK = 1.0
"""Most seconds without a queue that do not end it."""


def calm_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    """Yield the lines of a run with headroom, or of one that shows too little to say so, or misses its objectives."""
    yield from served_lines(run, verdict)
    yield from _cold_start(run, verdict)
    yield from _kv_peak(run)
    yield PlannedLine(at=None, parts=_kept_up(run, verdict), last_separator=": ", kind=LineKind.CAUSE)
    if verdict.cause is RunCause.MISSED:
        yield PlannedLine(at=None, parts=[missed_phrase(run, verdict)])
    yield PlannedLine(
        at=None,
        parts=[sustainable_phrase(run, verdict), _next_load(run, verdict)],
        separator="; ",
        kind=LineKind.ADVICE,
    )


def held_back_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    """Yield the lines of a run whose own concurrency limit held requests back."""
    yield PlannedLine(at=verdict.onset, parts=[held_back_phrase(run)], kind=LineKind.CAUSE)
    yield from served_lines(run, verdict)
    yield PlannedLine(at=None, parts=[Phrase(clauses.HELD_BACK, "the engine was offered no more than that limit")])
    text = "try a higher --max-concurrency, or a lower rate"
    yield PlannedLine(at=None, parts=[Phrase(clauses.TRY, text)], kind=LineKind.ADVICE)


def network_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    """Yield the lines of a run whose requests waited between client and engine."""
    text = f"the network, a proxy or the server's front end holds requests: {verdict.network}"
    yield PlannedLine(at=None, parts=[Phrase(clauses.NETWORK, text)], kind=LineKind.CAUSE)
    yield from served_lines(run, verdict)
    text = "try a client nearer to the server, or compare with the engine's own latencies"
    yield PlannedLine(at=None, parts=[Phrase(clauses.TRY, text)], kind=LineKind.ADVICE)


def held_back_phrase(run: RunRecord) -> Phrase:
    """Return how many requests the client's limit held back."""
    most, limit = longest_client_queue(run)
    of = "" if limit is None else f" of {limit}"
    return Phrase(
        clauses.HELD_BACK, f"up to {counted(most, 'request')} queued at the client by its limit{of} in flight"
    )


def missed_phrase(run: RunRecord, verdict: RunVerdict) -> Phrase:
    """The fraction of the requests that kept all objectives, from due; said where goodput, from sent, is higher.

    Requests that were given up unserved are among them.
    """
    history, first = run.history, run.history.first_from(_since(run, verdict))
    judged = float(np.nansum(history.column("judged", start=first)))
    unserved = given_up(run, _since(run, verdict)) if unserved_share(run) else 0
    served = judged / (judged + unserved) if judged else 1.0
    kept = served * share_kept(run, first, len(history))
    sent, due = (np.nansum(history.column(each, start=first, stop=len(history))) for each in ("good", "good_due"))
    clock = ", counted from due" if due < sent else ""
    text = f"only {whole_percent(kept)} of the requests had {objectives_text(run.header.config.goodput)}{clock}"
    return Phrase(clauses.MISSED, text)


def served_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    """Yield the requests served, at the offered rate if none of them was held back or left over, and their latency."""
    start = run.load_since if any(each.warmup for each in run.stages) else 0.0  # the load began within a tick
    ok, failed = run.count("ok", start), run.count("failed", start)
    if not ok:
        return
    rates = [
        each.request_rate for each in run.loads if each.request_rate is not None and math.isfinite(each.request_rate)
    ]
    cancelled = given_up(run, start)
    less = bool(cancelled) or verdict.cause is RunCause.CONCURRENCY  # the engine was sent, or served, less than that
    load = "" if less or not rates else f" at {_span(min(rates), max(rates))} req/s"
    parts = [
        Phrase(clauses.SERVED, f"{counted(ok, 'request')} served{load}, {failed:,.0f} failed"),
        Phrase(clauses.CANCELLED, f"{cancelled:,} cancelled unserved" if cancelled else ""),
    ]
    yield PlannedLine(at=run.load_since, parts=parts)
    if verdict.worst_ttft is not None:
        since = "" if verdict.cold_until is None else " after the cold start"
        text = f"TTFT p99 as felt at most {seconds(verdict.worst_ttft.seconds)} in any ten seconds{since}"
        yield PlannedLine(at=verdict.worst_ttft.at, parts=[Phrase(clauses.WORST_TTFT, text)])


def _span(low: float, high: float) -> str:
    return rate_number(low) if low == high else f"{rate_number(low)} to {rate_number(high)}"


def _since(run: RunRecord, verdict: RunVerdict) -> float:
    return run.load_since if verdict.cold_until is None else verdict.cold_until


def _cold_start(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    if verdict.cold_until is None:
        return
    first, stop = run.history.first_from(run.load_since), run.history.up_to(verdict.cold_until)
    worst = run.history.histogram("ttft_due", start=first, stop=stop).percentile(99)
    text = f"cold start until {clock(verdict.cold_until)}: TTFT p99 {seconds(worst)}" if worst > 0 else ""
    parts: list[Part] = [Phrase(clauses.COLD_START, text)]
    rates = cache_filled(run, first, stop)
    if rates is not None:
        filled = f"the prefix cache fills from {rates[0]:.0%} to {rates[1]:.0%} of the prompt tokens"
        parts.append(Phrase(clauses.CACHE_FILLED, filled))
    yield PlannedLine(at=run.load_since, parts=parts)


def _kv_peak(run: RunRecord) -> Iterable[PlannedLine]:
    """Yield the highest usage of the pages; none if all show 0, as those before and after the requests do."""
    seen = run.at_scrapes
    if run.replica_samples:  # the mean of all says little about the fullest
        usages = [kv_usage(each) for each in run.replica_samples]
        fullest = int(np.nanargmax(np.nan_to_num(usages, nan=-1.0)))
        sample, usage = run.replica_samples[fullest], usages[fullest]
        text = f"KV blocks at most {usage:.0%} in use{seen}, at replica {sample.replica + 1}" if usage > 0 else ""
        yield PlannedLine(at=sample.scrape_end, parts=[Phrase(clauses.KV_PEAK, text)], kind=LineKind.DETAIL)
        return
    peak = run.kv_usage()
    known = peak[peak == peak]
    if known.max(initial=0.0) > 0:
        at = run.history.ticks[int((peak == known.max()).argmax())].end
        text = f"KV blocks at most {known.max():.0%} in use{seen}"
        yield PlannedLine(at=at, parts=[Phrase(clauses.KV_PEAK, text)], kind=LineKind.DETAIL)


def _kept_up(run: RunRecord, verdict: RunVerdict) -> list[Part]:
    """Return what a run without an overload shows: little if no load lasted long enough for a queue to build up."""
    waiting = run.history.column("waiting", start=run.history.first_from(_since(run, verdict)))
    most = float(np.nanmax(waiting, initial=0.0))
    seen = run.at_scrapes
    lasted = "" if seen or _may_have_lasted(waiting) or run.of_kind(EpisodeKind.QUEUE) else "no queue that lasted, "
    queue = f"no queue{seen}" if most <= SHORT_QUEUE else f"{lasted}at most {most:,.0f} waiting{seen}"
    parts: list[Part] = [
        Phrase(clauses.NO_QUEUE, queue if verdict.cold_until is None else ""),
        Phrase(clauses.NO_FAILURE, "" if run.count("failed") else "no failure"),
    ]
    return [*parts, _kept_phrase(run, verdict)]


def _may_have_lasted(waiting: FloatArray) -> bool:
    """Whether requests waited for _LASTING seconds, apart from breaks of up to _BREAK in which pages show none."""
    queued = np.flatnonzero(~(waiting <= SHORT_QUEUE))
    parts = np.split(queued, np.flatnonzero(np.diff(queued) > ticks_of(_BREAK) + 1) + 1)
    lasting = (part for part in parts if part.size and part[-1] - part[0] + 1 >= ticks_of(_LASTING))
    return any(bool((waiting[part] > SHORT_QUEUE).any()) for part in lasting)


def _kept_phrase(run: RunRecord, verdict: RunVerdict) -> Phrase:
    loaded = ~np.isnan(run.history.column("request_rate"))
    stages = run.history.column("stage")[loaded]
    if stages.size and max(np.unique(stages, return_counts=True)[1]) < ticks_of(WINDOW):
        text = f"no stage lasted {WINDOW:.0f} s: too short to tell whether the engine keeps up"
        return Phrase(clauses.UNCLEAR, text)
    if verdict.passed is not None:
        return Phrase(
            clauses.PASSED, f"an overload of {seconds(length(run, verdict.passed))} passed within the objectives"
        )
    hidden = hidden_misses(run, _since(run, verdict))
    if verdict.cause is RunCause.UNCLEAR and kept_up(run) and hidden:
        text = (
            "whether the engine keeps up is unknown: its queue is not known, "
            f"and {whole_percent(hidden)} of the requests missed the objectives"
        )
        return Phrase(clauses.UNCLEAR, text)
    if verdict.cause is RunCause.UNCLEAR and kept_up(run):
        return Phrase(clauses.UNCLEAR, "too few bursts came to tell whether the engine keeps up with their rate")
    if verdict.cause is RunCause.UNCLEAR:
        grew = "requests were left unserved" if unserved_share(run) else "requests in flight still grew"
        return Phrase(clauses.UNCLEAR, f"{grew} when the load ended: the engine may not keep up")
    if verdict.cause is RunCause.MISSED:
        return Phrase(clauses.KEPT_UP, "" if given_up(run, run.load_since) else "the engine completed the load")
    after = "" if verdict.cold_until is None else " after its cold start"
    return Phrase(clauses.KEPT_UP, f"the engine kept up with the whole load{after}")


def _kept_at_last(run: RunRecord) -> bool:
    """Whether the second half of a run kept the objectives that the whole run missed, as with a cold cache."""
    return share_kept(run, run.history.first_from((run.load_since + run.until) / 2), len(run.history)) >= KEPT_SHARE


def _next_load(run: RunRecord, verdict: RunVerdict) -> list[Phrase]:
    """Advice on the next load, after a run that no limit slowed."""
    scheduled = run.header.is_scheduled_import
    without_rate = [] if scheduled else [each for each in run.loads if math.isinf(each.request_rate or 0.0)]
    closed = bool(without_rate)
    whole = share_kept(run, run.history.first_from(run.load_since), len(run.history))
    cold = whole < KEPT_SHARE and verdict.sustainable is None  # its start cost this run the objectives
    if verdict.cause is RunCause.MISSED and not _kept_at_last(run):
        lower = "concurrency" if closed else "rate"
        return [Phrase(clauses.TRY, f"try a lower {lower}, to see whether the load is the cause")]
    if cold or verdict.cause in (RunCause.MISSED, RunCause.UNCLEAR):
        return [Phrase(clauses.TRY, "try a longer run at this load")]
    if closed:
        limited = run.header.imported is not None or any(each.max_concurrency is not None for each in without_rate)
        return [Phrase(clauses.TRY, "try a higher concurrency" if limited else "try more requests at once")]
    if scheduled:
        return [Phrase(clauses.TRY, "try a higher rate")]
    higher = Phrase(clauses.TRY_HIGHER, "try a higher rate" if verdict.sustainable is not None else "")
    return [higher, Phrase(clauses.TRY, "try a longer run at one rate")]
