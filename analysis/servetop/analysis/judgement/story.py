"""The story of a run: four to six lines in order of time, cause before effect, that end with what to try."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from servetop.analysis.judgement.capacity import KEPT_SHARE
from servetop.analysis.judgement.detectors import SHORT_QUEUE, WINDOW
from servetop.analysis.judgement.engine_changes import batch_changes, change_text
from servetop.analysis.judgement.episode import EpisodeKind
from servetop.analysis.judgement.overload_story import overload_lines, sustainable_text
from servetop.analysis.judgement.run_record import RunRecord, failure_reason
from servetop.analysis.judgement.run_verdict import CLIENT_TOO, RunCause, RunVerdict, failed_at
from servetop.analysis.judgement.signals import ticks_of
from servetop.analysis.judgement.story_line import LineKind, StoryLine
from servetop.analysis.judgement.wording import clock, seconds, shortened
from servetop.analysis.sweep.sweep_text import sweep_headline, sweep_lines
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.text.counted import counted

_MAX_LINES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The verdict of a run in one sentence, and the lines that explain it."""

    verdict: RunVerdict
    headline: str
    lines: tuple[StoryLine, ...]
    sweep: SweepVerdict | None = None
    """The verdict of a sweep if the headline is about its cells; None for other runs, and for one that failed."""


_BEYOND_CELLS = (RunCause.ENGINE_FAILED, RunCause.NO_LOAD, RunCause.OTHERS, RunCause.CLIENT)
"""Causes that say more about a sweep than its cells do."""


def story_of(run: RunRecord, verdict: RunVerdict, sweep: SweepVerdict | None = None) -> Story:
    """Return the story of a judged run; that of a sweep is about its cells, because each has a load of its own."""
    if sweep is not None and verdict.cause not in _BEYOND_CELLS:
        return Story(verdict=verdict, headline=sweep_headline(sweep), lines=_in_order(sweep_lines(sweep)), sweep=sweep)
    main = verdict.main
    found = list(_OTHER[verdict.cause](run, verdict) if main is None else overload_lines(run, verdict, main))
    facts, advice = [line for line in found if not line.advice], [line for line in found if line.advice]
    facts[1:1] = _changes(run)
    return Story(verdict=verdict, headline=headline(run, verdict), lines=_in_order([*facts, *advice]))


def _in_order(found: Iterable[StoryLine]) -> tuple[StoryLine, ...]:
    """The most important lines by time, then the advice."""
    lines = list(found)
    facts, advice = [line for line in lines if not line.advice], [line for line in lines if line.advice]
    kept = sorted(facts, key=lambda line: line.kind is LineKind.DETAIL)[: _MAX_LINES - len(advice)]
    shown = sorted((line for line in facts if line in kept), key=lambda line: math.inf if line.at is None else line.at)
    return (*shown, *advice)


def _changes(run: RunRecord) -> Iterable[StoryLine]:
    changes = batch_changes(run)
    if changes:
        yield StoryLine(at=changes[0].at, text=change_text(run, changes))


def headline(run: RunRecord, verdict: RunVerdict) -> str:
    """The verdict in one sentence, such as `KV-bound from 0:54 at 13.9 req/s: TTFT p99 up to 17 s as felt`."""
    if verdict.cause is RunCause.ENGINE_FAILED and run.end is not None:
        return f"{verdict.cause.value} at {clock(verdict.onset or run.end.at)}: {shortened(run.end.reason)}"
    onset = "" if verdict.onset is None else f" from {clock(verdict.onset)}"
    rate = "" if verdict.onset_rate is None else f" at {verdict.onset_rate:.1f} req/s"
    evidence = [
        verdict.traffic,
        f"{verdict.preemptions:,.0f} preemptions" if verdict.preemptions else "",
        f"TTFT p99 up to {seconds(verdict.worst_ttft.seconds)} as felt" if verdict.worst_ttft else "",
        CLIENT_TOO if verdict.client_late else "",
    ]
    if verdict.cause is RunCause.FAILING:
        evidence.insert(0, _failed_share(run))
    found = f"{verdict.cause.value}{onset}{rate}"
    evidence = [each for each in evidence if each]
    parts = [f"{found}: {', '.join(evidence)}" if evidence else found, sustainable_text(verdict)]
    if verdict.advised_batch is not None:
        parts.append(f"try max_num_seqs {verdict.advised_batch}")
    return "; ".join(part for part in parts if part)


def _failing_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    begin, known_at = verdict.onset or 0.0, _known_at(run, EpisodeKind.FAILING)
    reason = shortened(failure_reason(run.notes, math.inf))
    yield StoryLine(
        at=begin, known_at=known_at, text=f"requests fail: {reason}" if reason else "requests fail", kind=LineKind.CAUSE
    )
    yield StoryLine(at=begin, known_at=known_at, text=_failed_share(run))
    yield from _served(run, verdict)
    attempt = "try shorter requests, or more KV memory" if "KV cache" in reason else _see_log(run)
    yield StoryLine(at=None, text=attempt, kind=LineKind.ADVICE)


def _client_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    late = max(run.of_kind(EpisodeKind.CLIENT), key=lambda each: each.worst)
    rate = "" if verdict.onset_rate is None else f" at {verdict.onset_rate:.1f} req/s"
    known_at = _known_at(run, EpisodeKind.CLIENT)
    yield StoryLine(
        at=verdict.onset, known_at=known_at, text=f"the client falls behind its schedule{rate}", kind=LineKind.CAUSE
    )
    yield StoryLine(
        at=late.worst_at, text=f"up to {late.worst:.0%} of requests are late: the figures describe the client"
    )
    yield from _served(run, verdict)
    yield StoryLine(at=None, text="try a lower rate, more workers, or a client with more CPU", kind=LineKind.ADVICE)


def _other_traffic_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    yield StoryLine(at=None, text=verdict.traffic, kind=LineKind.CAUSE)
    yield from _served(run, verdict)
    yield StoryLine(at=None, text="the latencies are those of both loads together")
    yield StoryLine(at=None, text="try a server that no other client uses", kind=LineKind.ADVICE)


def _stall_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    longest = max(run.of_kind(EpisodeKind.STALL), key=lambda each: each.worst)
    text = f"no token arrives for {longest.worst:.0f} s while requests are in flight"
    yield StoryLine(at=longest.begin, known_at=longest.detected_at, text=text, kind=LineKind.CAUSE)
    yield from _served(run, verdict)
    yield StoryLine(at=None, text=_see_log(run), kind=LineKind.ADVICE)


def _headroom_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    yield from _served(run, verdict)
    peak = run.kv_usage()
    known = peak[peak == peak]
    if known.size:
        position = int(known.argmax())
        at = run.history.ticks[int((peak == known[position]).argmax())].end
        yield StoryLine(at=at, text=f"KV blocks at most {known.max():.0%} in use", kind=LineKind.DETAIL)
    yield StoryLine(at=None, text=_kept_up(run), kind=LineKind.CAUSE)
    kept = run.share_in_time
    if kept < KEPT_SHARE:
        yield StoryLine(at=None, text=f"only {kept:.0%} of the requests had TTFT ≤ {seconds(run.ttft_objective)}")
    found = sustainable_text(verdict)
    attempt = "try a higher rate" if found else _next_load(run)
    yield StoryLine(at=None, text=f"{found}; {attempt}" if found else attempt, kind=LineKind.ADVICE)


def _kept_up(run: RunRecord) -> str:
    """What a run without an overload shows: little if no load lasted long enough for a queue to build up."""
    waiting = run.history.column("waiting", start=run.history.first_from(run.load_since))
    most = float(np.nanmax(waiting, initial=0.0))
    queue = "no queue" if most <= SHORT_QUEUE else f"no queue that lasted, at most {most:,.0f} waiting"
    clean = queue if run.count("failed") else f"{queue}, no failure"
    loaded = ~np.isnan(run.history.column("request_rate"))
    stages = run.history.column("stage")[loaded]
    if stages.size and max(np.unique(stages, return_counts=True)[1]) < ticks_of(WINDOW):
        return f"{clean}, but no stage lasted {WINDOW:.0f} s: too short to tell whether the engine keeps up"
    return f"{clean}: the engine kept up with the whole load"


def _next_load(run: RunRecord) -> str:
    """What to try after a run without a limit and without a rate that is known to be sustained."""
    if run.share_in_time < KEPT_SHARE:
        return "try a lower rate, or an objective that an idle engine keeps"
    closed = any(math.isinf(each.request_rate or 0.0) for each in run.loads)
    return "try a higher concurrency" if closed else "try a longer run at a higher rate"


def _served(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    """The requests served and their latency."""
    start = run.load_since
    ok, failed = run.count("ok", start), run.count("failed", start)
    if not ok:
        return
    rates = [
        each.request_rate for each in run.loads if each.request_rate is not None and math.isfinite(each.request_rate)
    ]
    load = (
        ""
        if not rates
        else f" at {min(rates):.3g} req/s"
        if min(rates) == max(rates)
        else (f" at {min(rates):.3g} to {max(rates):.3g} req/s")
    )
    yield StoryLine(at=start, text=f"{counted(ok, 'request')} served{load}, {failed:,.0f} failed")
    if verdict.worst_ttft is not None:
        text = f"TTFT p99 as felt at most {seconds(verdict.worst_ttft.seconds)} in any ten seconds"
        yield StoryLine(at=verdict.worst_ttft.at, text=text)


def _ended(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    reason = "" if run.end is None else f": {shortened(run.end.reason)}"
    yield StoryLine(at=verdict.onset, known_at=failed_at(run), text=f"the engine failed{reason}", kind=LineKind.CAUSE)
    if not math.isnan(run.load_since):
        yield from _served(run, verdict)
    yield StoryLine(at=None, text=_see_log(run), kind=LineKind.ADVICE)


def _no_load(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:  # noqa: ARG001
    yield StoryLine(at=None, text="nothing was sent: the run has no load", kind=LineKind.CAUSE)
    yield StoryLine(at=None, text=_see_log(run), kind=LineKind.ADVICE)


_OTHER = {
    RunCause.ENGINE_FAILED: _ended,
    RunCause.NO_LOAD: _no_load,
    RunCause.FAILING: _failing_lines,
    RunCause.OTHERS: _other_traffic_lines,
    RunCause.CLIENT: _client_lines,
    RunCause.STALL: _stall_lines,
    RunCause.HEADROOM: _headroom_lines,
}


def _known_at(run: RunRecord, kind: EpisodeKind) -> float:
    """When the first episode of a kind was detected."""
    return min(each.detected_at for each in run.of_kind(kind))


def _see_log(run: RunRecord) -> str:
    """Where to look for the reason; servetop has no log of a server that it did not start."""
    if run.header.config.engine.url is None:
        return "look at the engine's log (5)"
    return "look at the server's log" if run.count("sent") else "start the server, or correct --url"


def _failed_share(run: RunRecord) -> str:
    failed, ok = run.count("failed"), run.count("ok")
    return f"{failed:,.0f} of {counted(round(failed + ok), 'request')} failed"
