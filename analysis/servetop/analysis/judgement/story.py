"""The story of a run: four to six lines in order of time, cause before effect, that end with what to try."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from servetop.analysis.judgement.capacity import KEPT_SHARE
from servetop.analysis.judgement.engine_changes import batch_changes, change_text
from servetop.analysis.judgement.episode import EpisodeKind
from servetop.analysis.judgement.overload import Overload, named_at
from servetop.analysis.judgement.recovery import load_fell, queue_end
from servetop.analysis.judgement.run_record import RunRecord, failure_reason
from servetop.analysis.judgement.run_verdict import RunCause, RunVerdict
from servetop.analysis.judgement.wording import clock, counted, seconds, shortened

_MAX_LINES = 6
_TOGETHER = 2.0
"""Seconds between a limit and the queue behind it that the story does not tell apart."""


class LineKind(StrEnum):
    """What a line is for."""

    CAUSE = "cause"
    """It says what limited the run."""
    FACT = "fact"
    DETAIL = "detail"
    """It is omitted if there are too many lines."""
    ADVICE = "advice"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLine:
    """One sentence, and the time that it is about."""

    at: float | None
    """Seconds since the run's origin; None for the whole run."""
    known_at: float | None = None
    """When it was known, if that was later: from then on the verdict of the time shown says so."""
    text: str
    kind: LineKind = LineKind.FACT

    @property
    def advice(self) -> bool:
        """Whether it says what to try."""
        return self.kind is LineKind.ADVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The verdict of a run in one sentence, and the lines that explain it."""

    verdict: RunVerdict
    headline: str
    lines: tuple[StoryLine, ...]


def story_of(run: RunRecord, verdict: RunVerdict) -> Story:
    """Return the story of a judged run."""
    main = verdict.main
    found = list(_OTHER[verdict.cause](run, verdict) if main is None else _overload_lines(run, verdict, main))
    facts, advice = [line for line in found if not line.advice], [line for line in found if line.advice]
    facts[1:1] = _changes(run)
    kept = sorted(facts, key=lambda line: line.kind is LineKind.DETAIL)[: _MAX_LINES - len(advice)]
    lines = sorted((line for line in facts if line in kept), key=lambda line: math.inf if line.at is None else line.at)
    return Story(verdict=verdict, headline=headline(run, verdict), lines=(*lines, *advice))


def _changes(run: RunRecord) -> Iterable[StoryLine]:
    changes = batch_changes(run)
    if changes:
        yield StoryLine(at=changes[0].at, text=change_text(run, changes))


def headline(run: RunRecord, verdict: RunVerdict) -> str:
    """The verdict in one sentence, such as `KV-bound from 0:54 at 13.9 req/s: 519 preemptions, TTFT p99 17 s`."""
    if verdict.cause is RunCause.ENGINE_FAILED and run.end is not None:
        return f"{verdict.cause.value} at {clock(verdict.onset or run.end.at)}: {shortened(run.end.reason)}"
    onset = "" if verdict.onset is None else f" from {clock(verdict.onset)}"
    rate = "" if verdict.onset_rate is None else f" at {verdict.onset_rate:.1f} req/s"
    evidence = [
        f"{verdict.preemptions:,.0f} preemptions" if verdict.preemptions else "",
        f"TTFT p99 {seconds(verdict.worst_ttft.seconds)}" if verdict.worst_ttft else "",
    ]
    if verdict.cause is RunCause.FAILING:
        evidence.insert(0, _failed_share(run))
    found = f"{verdict.cause.value}{onset}{rate}"
    evidence = [each for each in evidence if each]
    parts = [f"{found}: {', '.join(evidence)}" if evidence else found, sustainable_text(verdict)]
    if verdict.advised_batch is not None:
        parts.append(f"try max_num_seqs {verdict.advised_batch}")
    return "; ".join(part for part in parts if part)


def sustainable_text(verdict: RunVerdict) -> str:
    """The load that the engine sustains, such as `sustainable ≈ 11 req/s with TTFT ≤ 500 ms`; empty if unknown."""
    if verdict.sustainable is None:
        return ""
    kept = "" if verdict.objective is None else f" with TTFT ≤ {seconds(verdict.objective)}"
    relation = "≥" if verdict.is_lower_bound else "≈"
    return f"sustainable {relation} {verdict.sustainable:.3g} req/s{kept}"


def _overload_lines(run: RunRecord, verdict: RunVerdict, main: Overload) -> Iterable[StoryLine]:
    """One overload: the limit, preemptions, queue, latency, recovery, and what to try."""
    onset = main.begin if verdict.onset is None else verdict.onset
    begin = onset if 0 <= onset - main.begin < _TOGETHER else main.begin
    known_at = named_at(run.episodes, main, run.history, run.header.engine)
    yield StoryLine(at=begin, known_at=known_at, text=_limit_text(run, verdict, main, begin), kind=LineKind.CAUSE)
    preempting, worst = main.first(EpisodeKind.PREEMPTIONS), main.worst(EpisodeKind.PREEMPTIONS)
    if preempting is not None and worst is not None:
        total = main.total(EpisodeKind.PREEMPTIONS)
        text = f"first preemption; {total:,.0f} in all, up to {worst.worst:.1f}/s"
        yield StoryLine(
            at=max(preempting.begin, begin), known_at=preempting.detected_at, text=text, kind=LineKind.DETAIL
        )
    queue = main.worst(EpisodeKind.QUEUE)
    if queue is not None:
        text = f"the queue grows, to {queue.worst:,.0f} requests at {clock(queue.worst_at)}"
        yield StoryLine(at=max(queue.begin, begin), known_at=queue.detected_at, text=text)
    yield _recovery(run, main)
    if verdict.worst_ttft is not None:
        before = run.history.histogram("ttft_due", start=0, stop=run.history.first_from(main.begin)).percentile(99)
        earlier = "" if math.isnan(before) else f", {seconds(before)} before the overload"
        text = f"TTFT p99 reaches {seconds(verdict.worst_ttft.seconds)}{earlier}"
        yield StoryLine(at=verdict.worst_ttft.at, text=text)
    if verdict.others:
        times = ", ".join(clock(each.begin) for each in verdict.others[:3])
        others = counted(len(verdict.others), "shorter overload")
        yield StoryLine(at=verdict.others[0].begin, text=f"{others}, from {times}", kind=LineKind.DETAIL)
    yield StoryLine(at=None, text=_advice(verdict), kind=LineKind.ADVICE)


def _limit_text(run: RunRecord, verdict: RunVerdict, main: Overload, begin: float) -> str:
    target = run.rate_at(begin)
    rate = f" at {target:.1f} req/s" if math.isfinite(target) else ""
    facts = run.header.engine
    if verdict.cause is RunCause.KV:
        blocks = "" if facts is None or not facts.kv_blocks_total else f"{facts.kv_blocks_total:,} "
        holding = (
            ""
            if verdict.capacity is None or math.isnan(verdict.capacity.running)
            else (f": its {blocks}blocks hold about {verdict.capacity.running:.0f} sequences")
        )
        return f"the KV cache fills{rate}{holding}"
    if verdict.cause is RunCause.BATCH:
        episode = main.first(EpisodeKind.BATCH)
        size = "" if episode is None or math.isnan(episode.batch) else f" of {episode.batch:.0f}"
        return f"the batch{size} is full{rate}"
    if verdict.cause is RunCause.LONG_PROMPTS:
        return f"longer prompts arrive{rate}, and requests wait behind their prefill"
    return f"requests arrive faster than the engine serves them{rate}, with free KV blocks and batch slots"


def _recovery(run: RunRecord, main: Overload) -> StoryLine:
    """When nothing waited any more, if that was before the end of the run."""
    end = queue_end(run, main)
    if end is None:
        return StoryLine(at=run.until, text="requests still wait at the end of the run")
    fell = load_fell(run, main, end)
    after = "" if fell is None else f", {end - fell:.0f} s after the load fell"
    return StoryLine(at=end, text=f"nothing waits any more{after}")


def _advice(verdict: RunVerdict) -> str:
    found = sustainable_text(verdict)
    if verdict.cause is RunCause.LONG_PROMPTS:
        attempt = "try a limit on the prompt length, or serve long prompts apart"
    elif verdict.cause is RunCause.KV:
        size = "" if verdict.advised_batch is None else f"max_num_seqs {verdict.advised_batch} or "
        attempt = f"try {size}more KV memory"
    elif verdict.cause is RunCause.BATCH:
        attempt = (
            "try a larger max_num_seqs"
            if verdict.advised_batch is None
            else f"try max_num_seqs {verdict.advised_batch}"
        )
    else:
        attempt = "try a lower rate or more replicas"
    return f"{found}; {attempt}" if found else attempt


def _failing_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    begin, known_at = verdict.onset or 0.0, _known_at(run, EpisodeKind.FAILING)
    reason = shortened(failure_reason(run.notes, math.inf))
    yield StoryLine(
        at=begin, known_at=known_at, text=f"requests fail: {reason}" if reason else "requests fail", kind=LineKind.CAUSE
    )
    yield StoryLine(at=begin, known_at=known_at, text=_failed_share(run))
    yield from _served(run, verdict)
    attempt = "try shorter requests, or more KV memory" if "KV cache" in reason else "look at the engine's log (5)"
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


def _stall_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    longest = max(run.of_kind(EpisodeKind.STALL), key=lambda each: each.worst)
    text = f"no token arrives for {longest.worst:.0f} s while requests are in flight"
    yield StoryLine(at=longest.begin, known_at=longest.detected_at, text=text, kind=LineKind.CAUSE)
    yield from _served(run, verdict)
    yield StoryLine(at=None, text="look at the engine's log at that time (5)", kind=LineKind.ADVICE)


def _headroom_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    yield from _served(run, verdict)
    peak = run.history.column("kv_usage")
    known = peak[peak == peak]
    if known.size:
        position = int(known.argmax())
        at = run.history.ticks[int((peak == known[position]).argmax())].end
        yield StoryLine(at=at, text=f"KV blocks at most {known.max():.0%} in use", kind=LineKind.DETAIL)
    clean = "no queue, no failure" if not run.count("failed") else "no queue"
    yield StoryLine(at=None, text=f"{clean}: the engine kept up with the whole load", kind=LineKind.CAUSE)
    kept = run.share_in_time
    if kept < KEPT_SHARE:
        yield StoryLine(at=None, text=f"only {kept:.0%} of the requests had TTFT ≤ {seconds(run.ttft_objective)}")
    found = sustainable_text(verdict)
    attempt = "try a higher rate" if found else _next_load(run)
    yield StoryLine(at=None, text=f"{found}; {attempt}" if found else attempt, kind=LineKind.ADVICE)


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
        text = f"TTFT p99 at most {seconds(verdict.worst_ttft.seconds)} in any ten seconds"
        yield StoryLine(at=verdict.worst_ttft.at, text=text)


def _ended(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:
    at = verdict.onset if verdict.onset is not None else run.until
    reason = "" if run.end is None else f": {shortened(run.end.reason)}"
    yield StoryLine(at=at, text=f"the engine failed{reason}", kind=LineKind.CAUSE)
    if not math.isnan(run.load_since):
        yield from _served(run, verdict)
    yield StoryLine(at=None, text="look at the engine's log (5)", kind=LineKind.ADVICE)


def _no_load(run: RunRecord, verdict: RunVerdict) -> Iterable[StoryLine]:  # noqa: ARG001
    yield StoryLine(at=None, text="nothing was sent: the run has no load", kind=LineKind.CAUSE)
    yield StoryLine(at=None, text="look at the engine's log (5)", kind=LineKind.ADVICE)


_OTHER = {
    RunCause.ENGINE_FAILED: _ended,
    RunCause.NO_LOAD: _no_load,
    RunCause.FAILING: _failing_lines,
    RunCause.CLIENT: _client_lines,
    RunCause.STALL: _stall_lines,
    RunCause.HEADROOM: _headroom_lines,
}


def _known_at(run: RunRecord, kind: EpisodeKind) -> float:
    """When the first episode of a kind was detected."""
    return min(each.detected_at for each in run.of_kind(kind))


def _failed_share(run: RunRecord) -> str:
    failed, ok = run.count("failed"), run.count("ok")
    return f"{failed:,.0f} of {failed + ok:,.0f} requests failed"
