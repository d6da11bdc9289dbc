"""The lines of the story of an overload: the limit, preemptions, queue, latency, recovery, and what to try."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from servetop.analysis.judgement.episode import EpisodeKind
from servetop.analysis.judgement.overload import Overload, limit_of, named_at
from servetop.analysis.judgement.recovery import load_fell, queue_end
from servetop.analysis.judgement.run_record import RunRecord
from servetop.analysis.judgement.run_verdict import RunCause, RunVerdict
from servetop.analysis.judgement.story_line import LineKind, StoryLine
from servetop.analysis.judgement.wording import clock, seconds
from servetop.core.text.counted import counted


def overload_lines(run: RunRecord, verdict: RunVerdict, main: Overload) -> Iterable[StoryLine]:
    """Yield the lines of one overload: the limit, preemptions, queue, latency, recovery, and what to try."""
    onset = main.begin if verdict.onset is None else verdict.onset
    begin = onset if verdict.cause is RunCause.LONG_PROMPTS else main.begin
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
        rate = "" if run.rate_at(queue.begin) == run.rate_at(begin) else _rate(run, queue.begin)
        text = f"the queue grows{rate}, to {queue.worst:,.0f} requests at {clock(queue.worst_at)}"
        yield StoryLine(at=max(queue.begin, begin), known_at=queue.detected_at, text=text)
    yield _recovery(run, main)
    if verdict.worst_ttft is not None:
        before = run.history.histogram("ttft_due", start=0, stop=run.history.first_from(main.begin)).percentile(99)
        highest = verdict.worst_ttft.seconds
        change = f"rises from {seconds(before)} to" if before < highest else "reaches"
        text = f"TTFT p99 as felt {change} {seconds(highest)}"
        yield StoryLine(at=verdict.worst_ttft.at, text=text)
    if verdict.others:
        yield StoryLine(at=verdict.others[0].begin, text=_others_text(run, verdict.others), kind=LineKind.DETAIL)
    yield StoryLine(at=None, text=_advice(verdict), kind=LineKind.ADVICE)


def _others_text(run: RunRecord, others: Sequence[Overload]) -> str:
    if len(others) > 1:
        return f"{counted(len(others), 'shorter overload')}, from {', '.join(clock(each.begin) for each in others[:3])}"
    (only,) = others
    limit = limit_of(only, run.history, run.header.engine, until=run.until)
    length = (run.until if only.end is None else only.end) - only.begin
    return f"a shorter overload, for {seconds(length)}: {limit.value}"


def _rate(run: RunRecord, at: float) -> str:
    target = run.rate_at(at)
    return f" at {target:.1f} req/s" if math.isfinite(target) else ""


def _limit_text(run: RunRecord, verdict: RunVerdict, main: Overload, begin: float) -> str:
    rate = _rate(run, begin)
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


def sustainable_text(verdict: RunVerdict) -> str:
    """The load that the engine sustains, such as `sustainable ≈ 11 req/s with TTFT ≤ 500 ms`; empty if unknown."""
    if verdict.capacity is not None and verdict.capacity.is_upper_bound:
        return f"sustainable < {verdict.capacity.rate:.3g} req/s (the batch has not drained)"
    if verdict.sustainable is None:
        return ""
    kept = "" if verdict.objective is None else f" with TTFT ≤ {seconds(verdict.objective)}"
    relation = "≥" if verdict.is_lower_bound else "≈"
    return f"sustainable {relation} {verdict.sustainable:.3g} req/s{kept}"
