"""The story of a run: four to six lines in order of time, cause before effect, that end with what to try."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from servetop.analysis.diagnosis import clauses
from servetop.analysis.diagnosis.calm_story import (
    calm_lines,
    held_back_lines,
    held_back_phrase,
    missed_phrase,
    network_lines,
    served_lines,
)
from servetop.analysis.diagnosis.clauses import Clause, Phrase, supported
from servetop.analysis.diagnosis.engine_changes import batch_changes, change_text
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.evidence import observed
from servetop.analysis.diagnosis.observation import Observation
from servetop.analysis.diagnosis.onset import onset_text
from servetop.analysis.diagnosis.overload_story import overload_lines, sustainable_phrase
from servetop.analysis.diagnosis.replica_text import at_replica
from servetop.analysis.diagnosis.run_record import RunRecord, failure_reason
from servetop.analysis.diagnosis.run_verdict import CLIENT_TOO, RunCause, RunVerdict, failed_at
from servetop.analysis.diagnosis.story_line import LineKind, PlannedLine, StoryLine
from servetop.analysis.diagnosis.wording import seconds, shortened
from servetop.analysis.sweep.sweep_text import sweep_headline, sweep_lines
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.text.counted import counted
from servetop.core.text.formats import clock

_MAX_LINES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The verdict of a run in one sentence, and the lines that explain it."""

    verdict: RunVerdict
    headline: str
    lines: tuple[StoryLine, ...]
    clauses: tuple[Clause, ...] = ()
    """The statements of the headline."""
    sweep: SweepVerdict | None = None
    """The verdict of a sweep if the headline is about its cells; None for other runs."""


_BEYOND_CELLS = (RunCause.NO_LOAD, RunCause.OTHERS, RunCause.CLIENT, RunCause.NETWORK)
"""Causes that say more about a sweep than its cells do, as does the failure of an engine that served no cell."""
_STALLS_NAMED = 3


def story_of(run: RunRecord, verdict: RunVerdict, sweep: SweepVerdict | None = None) -> Story:
    """Return the story of a judged run; that of a sweep is about its cells, because each has a load of its own.

    Only what follows from the observations of the run is said.
    """
    if sweep is not None and verdict.cause is RunCause.ENGINE_FAILED and _has_served(sweep):
        count, reason = _failed_cells(run), "" if run.end is None else f": {shortened(run.end.reason)}"
        lines = [StoryLine(at=failed_at(run), text=f"{count}{reason}"), *sweep_lines(sweep)]
        return Story(verdict=verdict, headline=f"{sweep_headline(sweep)}; {count}", lines=_in_order(lines), sweep=sweep)
    if sweep is not None and verdict.cause not in (*_BEYOND_CELLS, RunCause.ENGINE_FAILED):
        return Story(verdict=verdict, headline=sweep_headline(sweep), lines=_in_order(sweep_lines(sweep)), sweep=sweep)
    known = observed(run) | ({Observation.STEADY_WINDOW} if verdict.is_lower_bound else set())
    main = verdict.main
    planned = list(_OTHER[verdict.cause](run, verdict) if main is None else overload_lines(run, verdict, main))
    advice = [line for line in planned if line.kind is LineKind.ADVICE]
    facts = [line for line in planned if line.kind is not LineKind.ADVICE]
    facts[1:1] = [*_changes(run), *_conditions(run, verdict)]
    lines = [line for line in (each.printed(known) for each in [*facts, *advice]) if line is not None]
    phrases = _headline(run, verdict, known)
    return Story(
        verdict=verdict,
        headline=_joined(phrases),
        lines=_in_order(lines),
        clauses=tuple(each.clause for group in phrases for each in group),
    )


def _has_served(sweep: SweepVerdict) -> bool:
    return any(cell.output_throughput for cell in sweep.cells)


def _failed_cells(run: RunRecord) -> str:
    """Return how many cells of a sweep the engine failed, which `--resume` measures again."""
    failed = len({(stage.label, stage.repeat) for stage in run.stages if stage.failure is not None})
    return f"{counted(failed, 'cell')} failed" if failed else "the engine failed"


def _in_order(found: Iterable[StoryLine]) -> tuple[StoryLine, ...]:
    """Return the most important lines by time, then the advice."""
    lines = list(found)
    facts, advice = [line for line in lines if not line.advice], [line for line in lines if line.advice]
    kept = sorted(facts, key=lambda line: line.kind is LineKind.DETAIL)[: _MAX_LINES - len(advice)]
    shown = sorted((line for line in facts if line in kept), key=lambda line: math.inf if line.at is None else line.at)
    return (*shown, *advice)


def _changes(run: RunRecord) -> Iterable[PlannedLine]:
    changes = batch_changes(run)
    if changes:
        yield PlannedLine(at=changes[0].at, parts=[Phrase(clauses.CHANGED, change_text(run, changes))])


def _conditions(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    """Yield what changed the engine or the load while it was measured: throttled clocks, pauses, failed requests."""
    throttled = run.of_kind(EpisodeKind.THROTTLED)
    if throttled:
        total = sum(each.seconds(run.until) for each in throttled)
        text = f"the GPU's clocks are throttled for {seconds(total)}: the figures are those of a slower GPU"
        yield PlannedLine(at=throttled[0].begin, parts=[Phrase(clauses.THROTTLED, text)])
    stalls = run.of_kind(EpisodeKind.STALL)
    if stalls and verdict.cause not in (RunCause.STALL, RunCause.ENGINE_FAILED, RunCause.FAILING):
        yield PlannedLine(at=stalls[0].begin, parts=[Phrase(clauses.STALLED, _stalls_text(run))])
    if verdict.main is not None and run.count("failed"):
        yield PlannedLine(at=None, parts=[Phrase(clauses.FAILED_SHARE, _failed_share(run))], kind=LineKind.DETAIL)


def _joined(phrases: tuple[list[Phrase], list[Phrase], list[Phrase]]) -> str:
    cause, evidence, advice = ([each.text for each in group] for group in phrases)
    found = f"{''.join(cause)}: {', '.join(evidence)}" if evidence else "".join(cause)
    return "; ".join([found, *advice])


def _headline(
    run: RunRecord, verdict: RunVerdict, known: frozenset[Observation]
) -> tuple[list[Phrase], list[Phrase], list[Phrase]]:
    """Return the verdict, such as `KV-bound from 0:54 at 13.9 req/s`, its evidence, and what the engine sustains."""
    if verdict.cause is RunCause.ENGINE_FAILED and run.end is not None:
        text = f"{RunCause.ENGINE_FAILED.value} at {clock(verdict.onset or run.end.at)}: {shortened(run.end.reason)}"
        return [Phrase(clauses.ENGINE_FAILED, text)], [], []
    onset = onset_text(run, verdict)
    rate = "" if verdict.onset_rate is None else f" at {verdict.onset_rate:.1f} req/s"
    place = at_replica(verdict.replicas) if verdict.cold_until is None else " after a cold start"
    either = f"engine or network overloaded{onset}{rate}" if verdict.cause is RunCause.UNKNOWN else ""
    named = [
        Phrase(_CAUSES[verdict.cause], f"{verdict.cause.value}{place}{onset}{rate}"),
        Phrase(clauses.PATH_OVERLOADED, either),
        Phrase(clauses.TRY, f"{RunCause.UNCLEAR.value}{onset}{rate}"),
    ]
    advised = "" if verdict.advised_batch is None else f"try max_num_seqs {verdict.advised_batch}"
    last = [sustainable_phrase(run, verdict), Phrase(clauses.TRY_BATCH, advised)]
    return supported([named], known), supported(_evidence(run, verdict), known), supported(last, known)


def _evidence(run: RunRecord, verdict: RunVerdict) -> list[Phrase]:
    least = "at least " if run.sees_little else ""  # some may have followed the newest page
    preempted = f"{least}{counted(round(verdict.preemptions), 'preemption')}" if verdict.preemptions else ""
    found = [
        Phrase(clauses.OTHERS, verdict.traffic),
        Phrase(clauses.NETWORK, verdict.network),
        Phrase(clauses.PREEMPTED, preempted),
    ]
    if verdict.worst_ttft is not None:
        since = "" if verdict.cold_until is None else " after it"
        text = f"TTFT p99 up to {seconds(verdict.worst_ttft.seconds)} as felt{since}"
        found.append(Phrase(clauses.WORST_TTFT, text))
    found.append(Phrase(clauses.CLIENT_LATE, CLIENT_TOO if verdict.client_late else ""))
    if verdict.cause is RunCause.FAILING:
        return [Phrase(clauses.FAILED_SHARE, _failed_share(run)), *found]
    if verdict.main is not None and run.count("failed"):
        found.append(Phrase(clauses.FAILED_SHARE, _failed_share(run)))
    if verdict.cause is RunCause.CONCURRENCY:
        return [held_back_phrase(run), *found]
    return [missed_phrase(run, verdict), *found] if verdict.cause is RunCause.MISSED else found


def _failing_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    begin, known_at = verdict.onset, _known_at(run, EpisodeKind.FAILING)
    reason = shortened(run.failure or failure_reason(run.notes, math.inf))
    text = f"requests fail: {reason}" if reason else "requests fail"
    yield PlannedLine(at=begin, known_at=known_at, parts=[Phrase(clauses.FAILS, text)], kind=LineKind.CAUSE)
    yield PlannedLine(at=begin, known_at=known_at, parts=[Phrase(clauses.FAILED_SHARE, _failed_share(run))])
    yield from served_lines(run, verdict)
    attempt = "try shorter requests, or more KV memory" if "KV cache" in reason else _see_log(run)
    if "HTTP 429" in reason:
        attempt = "try a lower rate, or a higher limit at the server: it refuses requests above its own"
    yield PlannedLine(at=None, parts=[Phrase(clauses.TRY, attempt)], kind=LineKind.ADVICE)


def _client_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    late = max(run.of_kind(EpisodeKind.CLIENT), key=lambda each: each.worst)
    rate = "" if verdict.onset_rate is None else f" at {verdict.onset_rate:.1f} req/s"
    known_at = _known_at(run, EpisodeKind.CLIENT)
    behind = Phrase(clauses.CLIENT_LATE, f"the client falls behind its schedule{rate}")
    yield PlannedLine(at=verdict.onset, known_at=known_at, parts=[behind], kind=LineKind.CAUSE)
    text = f"up to {late.worst:.0%} of requests are late: the figures describe the client"
    yield PlannedLine(at=late.worst_at, parts=[Phrase(clauses.CLIENT_LATE, text)])
    yield from served_lines(run, verdict)
    text = "try a lower rate, more workers, or a client with more CPU"
    yield PlannedLine(at=None, parts=[Phrase(clauses.TRY, text)], kind=LineKind.ADVICE)


def _other_traffic_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    yield PlannedLine(at=None, parts=[Phrase(clauses.OTHERS, verdict.traffic)], kind=LineKind.CAUSE)
    yield from served_lines(run, verdict)
    yield PlannedLine(at=None, parts=[Phrase(clauses.OTHERS, "the latencies are those of both loads together")])
    text = "try a server that no other client uses"
    yield PlannedLine(at=None, parts=[Phrase(clauses.TRY, text)], kind=LineKind.ADVICE)


def _stall_lines(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    longest = max(run.of_kind(EpisodeKind.STALL), key=lambda each: each.worst)
    text = _stalls_text(run)
    yield PlannedLine(
        at=longest.begin,
        known_at=longest.detected_at,
        parts=[Phrase(clauses.STALLED, text)],
        kind=LineKind.CAUSE,
    )
    yield from served_lines(run, verdict)
    yield PlannedLine(at=None, parts=[Phrase(clauses.TRY, _see_log(run))], kind=LineKind.ADVICE)


def _stalls_text(run: RunRecord) -> str:
    """Return the longest time without a token, and how often there was one."""
    stalls = run.of_kind(EpisodeKind.STALL)
    longest = max(stalls, key=lambda each: each.worst)
    text = f"no token arrives for {seconds(longest.worst)} while requests are in flight"
    if len(stalls) == 1:
        return text
    listed = ", ".join(clock(each.begin) for each in stalls[:_STALLS_NAMED])
    more = ", …" if stalls[_STALLS_NAMED:] else ""
    return f"{text}; {len(stalls)} such pauses, from {listed}{more}"


def _ended(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:
    reason = "" if run.end is None else f": {shortened(run.end.reason)}"
    failed = Phrase(clauses.ENGINE_FAILED, f"the engine failed{reason}")
    yield PlannedLine(at=verdict.onset, known_at=failed_at(run), parts=[failed], kind=LineKind.CAUSE)
    if not math.isnan(run.load_since):
        yield from served_lines(run, verdict)
    yield PlannedLine(at=None, parts=[Phrase(clauses.TRY, _see_log(run))], kind=LineKind.ADVICE)


def _no_load(run: RunRecord, verdict: RunVerdict) -> Iterable[PlannedLine]:  # noqa: ARG001
    nothing = Phrase(clauses.NO_LOAD, "nothing was sent: the run has no load")
    yield PlannedLine(at=None, parts=[nothing], kind=LineKind.CAUSE)
    yield PlannedLine(at=None, parts=[Phrase(clauses.TRY, _see_log(run))], kind=LineKind.ADVICE)


_OTHER: Mapping[RunCause, Callable[[RunRecord, RunVerdict], Iterable[PlannedLine]]] = {
    RunCause.ENGINE_FAILED: _ended,
    RunCause.NO_LOAD: _no_load,
    RunCause.FAILING: _failing_lines,
    RunCause.OTHERS: _other_traffic_lines,
    RunCause.CLIENT: _client_lines,
    RunCause.NETWORK: network_lines,
    RunCause.CONCURRENCY: held_back_lines,
    RunCause.STALL: _stall_lines,
    RunCause.MISSED: calm_lines,
    RunCause.HEADROOM: calm_lines,
    RunCause.UNCLEAR: calm_lines,
}
_CAUSES: Mapping[RunCause, Clause] = {
    RunCause.ENGINE_FAILED: clauses.ENGINE_FAILED,
    RunCause.NO_LOAD: clauses.NO_LOAD,
    RunCause.FAILING: clauses.FAILS,
    RunCause.OTHERS: clauses.OTHERS,
    RunCause.CLIENT: clauses.CLIENT_LATE,
    RunCause.NETWORK: clauses.NETWORK,
    RunCause.KV: clauses.KV,
    RunCause.BATCH: clauses.BATCH,
    RunCause.RATE: clauses.RATE,
    RunCause.LONG_PROMPTS: clauses.LONG_PROMPTS,
    RunCause.UNKNOWN: clauses.OVERLOADED,
    RunCause.CONCURRENCY: clauses.HELD_BACK,
    RunCause.STALL: clauses.STALLED,
    RunCause.MISSED: clauses.MISSED,
    RunCause.HEADROOM: clauses.KEPT_UP,
    RunCause.UNCLEAR: clauses.TRY,
}
"""The statement that the headline begins with, by cause."""


def _known_at(run: RunRecord, kind: EpisodeKind) -> float | None:
    """Return when the first episode of a kind was detected; None without one."""
    return min((each.detected_at for each in run.of_kind(kind)), default=None)


def _see_log(run: RunRecord) -> str:
    """Return where to look for the reason; servetop has no log of a server that it did not start."""
    if run.header.config.engine.url is None:
        return "look at the engine's log (5)"
    return "look at the server's log" if run.count("sent") else "start the server, or correct --url"


def _failed_share(run: RunRecord) -> str:
    failed, ok = run.count("failed"), run.count("ok")
    return f"{failed:,.0f} of {counted(round(failed + ok), 'request')} failed"
