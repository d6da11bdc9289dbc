"""The lines of the story of an overload: the limit, preemptions, queue, latency, recovery, and what to try."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from servetop.analysis.diagnosis import clauses
from servetop.analysis.diagnosis.clauses import Part, Phrase
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.evidence import observed
from servetop.analysis.diagnosis.limit_text import limit_parts, rate_text
from servetop.analysis.diagnosis.overload import Limit, Overload, limit_of, named_at
from servetop.analysis.diagnosis.overload_rates import holds_too_few
from servetop.analysis.diagnosis.rate_interval import RateInterval
from servetop.analysis.diagnosis.recovery import few_wait_after, load_fell, queue_end, still_waits
from servetop.analysis.diagnosis.replica_text import replica_advice, replica_blocks, replica_queues
from servetop.analysis.diagnosis.run_record import FEW_PAGES, RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, RunVerdict
from servetop.analysis.diagnosis.story_line import LineKind, PlannedLine
from servetop.analysis.diagnosis.trailing import page_gaps
from servetop.analysis.diagnosis.wording import interval_text, objectives_text, seconds
from servetop.core.text.counted import counted
from servetop.core.text.formats import clock, rate_number

_SURE = 0.15
"""Fraction of an estimated rate beyond which an end of its interval makes the estimate no figure to plan with."""
_GROWS = 1.25
"""The longest queue relative to that of its beginning, from which it grew."""


def overload_lines(run: RunRecord, verdict: RunVerdict, main: Overload) -> Iterable[PlannedLine]:
    """Yield the lines of one overload: the limit, preemptions, queue, latency, recovery, and what to try."""
    onset = main.begin if verdict.onset is None else verdict.onset
    begin = onset if verdict.cause in (RunCause.LONG_PROMPTS, RunCause.BATCH) else main.begin
    known_at = named_at(run.episodes, main, run.history, run.header.engine)
    yield PlannedLine(
        at=begin, known_at=known_at, parts=limit_parts(run, verdict, main, begin), separator=": ", kind=LineKind.CAUSE
    )
    yield from _preemptions(run, main, begin)
    yield from _growth(run, main, begin, replica_queues(verdict.replicas))
    blocks = list(replica_blocks(verdict.replicas))
    yield PlannedLine(at=begin, parts=blocks, kind=LineKind.DETAIL)
    yield from _recovery(run, main)
    if verdict.worst_ttft is not None:
        before = run.history.histogram("ttft_due", start=0, stop=run.history.first_from(main.begin)).percentile(99)
        highest, after = verdict.worst_ttft.seconds, verdict.worst_ttft.at > main.begin
        change = f"rises from {seconds(before)} to" if after and before < highest else "reaches"
        text = f"TTFT p99 as felt {change} {seconds(highest)}"
        yield PlannedLine(at=verdict.worst_ttft.at, parts=[Phrase(clauses.WORST_TTFT, text)])
    if verdict.others:
        text = _others_text(run, verdict.others)
        yield PlannedLine(
            at=verdict.others[0].begin, parts=[Phrase(clauses.OTHER_OVERLOADS, text)], kind=LineKind.DETAIL
        )
    parts: list[Part] = [sustainable_phrase(run, verdict), *_advice(verdict, run, main)]
    yield PlannedLine(at=None, parts=parts, separator="; ", kind=LineKind.ADVICE)


def _preemptions(run: RunRecord, main: Overload, begin: float) -> Iterable[PlannedLine]:
    preempting, worst = main.first(EpisodeKind.PREEMPTIONS), main.worst(EpisodeKind.PREEMPTIONS)
    if preempting is not None and worst is not None:
        total = run.total_of_loads("preemptions", main.begin, run.until if main.end is None else main.end)
        least = "at least " if run.sees_little else ""
        pages = page_gaps(run.history.column("scrape_end"))
        gap = pages[min(run.history.first_from(preempting.begin), pages.size - 1)]
        seen = " seen" if gap > FEW_PAGES else ""
        text = f"first preemption{seen}; {least}{total:,.0f} in all, up to {worst.worst:.1f}/s"
        yield PlannedLine(
            at=max(preempting.begin, begin),
            known_at=preempting.detected_at,
            parts=[Phrase(clauses.PREEMPTED, text)],
            kind=LineKind.DETAIL,
        )


def _growth(run: RunRecord, main: Overload, begin: float, places: Iterable[Phrase]) -> Iterable[PlannedLine]:
    """Yield the queue, or the requests without a first token, else the growth of the requests in flight."""
    queue, awaiting, piling = (
        main.worst(kind) for kind in (EpisodeKind.QUEUE, EpisodeKind.AWAITING, EpisodeKind.IN_FLIGHT)
    )
    if queue is not None:
        rate = "" if run.rate_at(queue.begin) == run.rate_at(begin) else rate_text(run, queue.begin)
        text = f"the queue grows{rate}, to {counted(round(queue.worst), 'request')} at {clock(queue.worst_at)}"
        before = run.history.value("waiting", min(run.history.first_from(queue.begin), len(run.history) - 1))
        if queue.worst <= _GROWS * before:  # it was there from the start
            scraped = run.at_scrapes
            text = f"at most {queue.worst:,.0f} waiting{scraped}"
        found, phrase = queue, Phrase(clauses.QUEUE_GROWS, text)
    elif awaiting is not None:
        count = counted(round(awaiting.worst), "request")
        found = awaiting
        phrase = Phrase(clauses.AWAITING, f"up to {count} without a first token, at {clock(awaiting.worst_at)}")
    elif piling is not None:
        first = run.history.value("in_flight", min(run.history.first_from(piling.begin), len(run.history) - 1))
        text = f"requests in flight grow from {first:,.0f} to {piling.worst:,.0f} at {clock(piling.worst_at)}"
        found, phrase = piling, Phrase(clauses.IN_FLIGHT_GROWS, text)
    else:
        return
    parts = [phrase, *(places if found is queue else ())]
    yield PlannedLine(at=max(found.begin, begin), known_at=found.detected_at, parts=parts, separator="; ")


def _others_text(run: RunRecord, others: Sequence[Overload]) -> str:
    if len(others) > 1:
        return f"{counted(len(others), 'shorter overload')}, from {', '.join(clock(each.begin) for each in others[:3])}"
    (only,) = others
    limit = limit_of(only, run.history, run.header.engine, until=run.until)
    length = (run.until if only.end is None else only.end) - only.begin
    unknown = limit is Limit.UNKNOWN and _may_be_the_network(run)
    name = clauses.PATH_OVERLOADED.example if unknown else limit.value
    return f"a shorter overload, for {seconds(length)}: {name}"


def _may_be_the_network(run: RunRecord) -> bool:
    """Whether an overload without a known limit may as well be one between client and engine."""
    return not clauses.OVERLOADED.is_supported(observed(run))


def _recovery(run: RunRecord, main: Overload) -> Iterable[PlannedLine]:
    """Yield when nothing waited any more, if that was before the end of the run; nothing if that is not known."""
    awaiting = [each for each in main.episodes if each.kind is EpisodeKind.AWAITING]
    by_client = bool(awaiting) and main.first(EpisodeKind.QUEUE) is None
    if not by_client and main.first(EpisodeKind.QUEUE) is None and main.first(EpisodeKind.BATCH) is None:
        return
    end = queue_end(run, main)
    if end is None and still_waits(run):
        text = "requests still wait at the end of the run"
        yield PlannedLine(at=run.until, parts=[Phrase(clauses.STILL_WAIT, text)])
    if end is None or run.sees_little or run.count("cancelled", end - 1.0):  # given up, not served
        return
    if by_client and not few_wait_after(run, main, end):
        return
    fell = load_fell(run, main, end)
    after = "" if fell is None else f", {end - fell:.0f} s after the load fell"
    ended = Phrase(clauses.ALL_STARTED, f"few requests wait for their first token any more{after}")
    yield PlannedLine(
        at=end, parts=[ended if by_client else Phrase(clauses.QUEUE_ENDED, f"nothing waits any more{after}")]
    )


def _advice(verdict: RunVerdict, run: RunRecord, main: Overload) -> Iterable[Sequence[Phrase]]:
    """Advice by the cause, from the most specific to one that needs no metrics."""
    weakest = Phrase(clauses.TRY, "try a lower concurrency or more replicas")
    if run.header.is_scheduled_import:
        weakest = Phrase(clauses.TRY, "try a lower rate or more replicas")
    lower = Phrase(clauses.TRY_LOWER, "try a lower rate or more replicas")
    if verdict.cause is RunCause.UNKNOWN and _may_be_the_network(run):
        lower = Phrase(clauses.TRY_METRICS, clauses.TRY_METRICS.example)
    stronger: list[Phrase] = []
    size = verdict.advised_batch
    if verdict.replicas is not None and verdict.replicas.uneven:
        stronger = [replica_advice(verdict.replicas)]
    elif verdict.cause is RunCause.LONG_PROMPTS:
        stronger = [Phrase(clauses.TRY, "try a limit on the prompt length, or serve long prompts apart")]
    elif verdict.cause is RunCause.KV:
        sized = "" if size is None else f"try max_num_seqs {size} or more KV memory"
        stronger = [Phrase(clauses.TRY_BATCH, sized), Phrase(clauses.TRY_KV, "try more KV memory")]
        if holds_too_few(run, main):
            stronger.insert(0, Phrase(clauses.TRY_RESTART, clauses.TRY_RESTART.example))
    elif verdict.cause is RunCause.BATCH:
        sized = "" if size is None else f"try max_num_seqs {size}"
        stronger = [Phrase(clauses.TRY_BATCH, sized), Phrase(clauses.TRY_LARGER_BATCH, "try a larger max_num_seqs")]
    yield [*stronger, lower, weakest]


def sustainable_phrase(run: RunRecord, verdict: RunVerdict) -> Phrase:
    """Return the load that the engine sustains, such as `sustainable ≈ 11 req/s [9.4, 12.1] with TTFT ≤ 500 ms`.

    Of an estimate whose interval is wide only the range in which the load is nearly certain; empty if unknown.
    """
    if verdict.capacity is not None and verdict.capacity.is_upper_bound:
        text = f"sustainable < {rate_number(verdict.capacity.rate)} req/s (the batch has not drained)"
        return Phrase(clauses.SUSTAINS_LESS, text)
    if verdict.sustainable is None or not verdict.sustainable > 0:
        return Phrase(clauses.SUSTAINS, "")
    objectives = objectives_text(run.header.config.goodput)
    kept = f" with {objectives}" if objectives else ""
    amount = rate_number(verdict.sustainable)
    if verdict.is_lower_bound:
        return Phrase(clauses.SUSTAINS_MORE, f"sustainable ≥ {amount} req/s{kept}")
    if verdict.sustainable_interval is not None and _is_wide(verdict.sustainable_interval, verdict.sustainable):
        low, high = map(rate_number, verdict.sustainable_range or verdict.sustainable_interval)
        return Phrase(clauses.SUSTAINS_BETWEEN, f"sustainable {low} to {high} req/s{kept}")
    between = interval_text(verdict.sustainable_interval)
    return Phrase(clauses.SUSTAINS, f"sustainable ≈ {amount} req/s{between}{kept}")


def _is_wide(interval: RateInterval, rate: float) -> bool:
    """Whether an end of the interval is more than `_SURE` away from the estimate."""
    return not (1 - _SURE) * rate <= interval[0] <= interval[1] <= (1 + _SURE) * rate
