"""The result of a search, from its recording alone; its fields are those of `servetop search --json`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from servetop.analysis.summary.summary_types import RunSummary, StageSummary
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.config_values.search_config import SearchConfig
from servetop.core.errors import ExitCode
from servetop.core.events import Note, RunEnd
from servetop.core.text import formats
from servetop.recordings.read.reader import RecordingReader
from servetop.run.outcome import decisive
from servetop.run.search.answer_text import (
    answer_sentence,
    binding_text,
    figure_text,
    is_kept,
    load_text,
    others_text,
    restart_text,
    seen_figure,
    subject_of,
)
from servetop.run.search.load_windows import merged
from servetop.run.search.objective_text import objective_label
from servetop.run.search.recorded_probes import CLIENT_BOUND, SOURCE
from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import Evidence, LoadObjective, Probe, Purpose
from servetop.run.search.search_setup import SearchSetup

_EQUAL = 1.001
"""Loads are rounded to four digits before they are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveSeen:
    """One objective in the confirmation."""

    objective: str
    share_within: float | None
    """Share of its samples within the limit; None without samples, and for an objective on a mean."""
    mean: float | None
    """The mean in seconds, for an objective on a mean; None for others, and without samples."""
    kept: bool
    """Whether the figure is within the objective; true without samples."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A load kept at the end of a search: as nothing was chosen from its figures, they are unbiased."""

    load: float
    seconds: float
    seen: tuple[ObjectiveSeen, ...]
    kept: bool
    """Whether every objective of which there are samples was kept."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TierResult:
    """The answer of one `--slo`."""

    slo: str
    kind: AnswerKind
    load: float | None
    low: float | None
    high: float | None
    """The 95 % interval; None for an end that is not known."""
    binding: str | None
    """The objective that sets the load, or `queue`."""
    minutes_left: float | None
    """For `wide`: further minutes until the interval would be as narrow as asked; None if not estimated."""
    text: str
    """One sentence."""
    binding_text: str | None
    """What happens above the load, in words."""
    contradicted: bool
    """Whether the confirmation missed one of its objectives at a load that the answer says is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The answers of a search, and what they rest on."""

    tiers: tuple[TierResult, ...]
    over: str
    """What was varied: `request_rate` (requests/s) or `max_concurrency` (requests in flight)."""
    low: float
    high: float
    budget: float
    precision: float
    seconds: float
    """Time of load that was used."""
    probes: int
    """Loads that were kept."""
    restarted_at: float | None
    """Run time in seconds at which the server last restarted: no load before it counts; None if it did not."""
    confirmation: Confirmation | None
    cost_per_million_output_tokens: float | None
    """At `cost_load`; None without `--price`."""
    cost_load: float | None
    """The load of the confirmation, else the highest load kept that the answer contains; None without such."""
    currency: str | None
    warnings: tuple[str, ...]
    """Why the answers may be wrong, such as other clients of the server."""
    complete: bool
    """Whether the search came to its own end."""
    recording: str
    exit_code: int
    error: str | None
    """The reason of an exit code other than 0."""


def search_result(
    reader: RecordingReader,
    summary: RunSummary,
    *,
    end: RunEnd | None = None,
    setup: SearchSetup | None = None,
    evidence: Evidence | None = None,
) -> SearchResult:
    """Return the result of a recording; `setup` replaces that of its configuration, `evidence` is what was read of it.

    `end` is the end of a run that is not recorded yet; the result then has the exit code that the answers deserve too.
    """
    setup = setup or SearchSetup.of(reader.header.config)
    evidence = evidence or setup.evidence(reader)
    notes = [note for note in reader.notes() if note.source == SOURCE]
    answers = setup.planner.answers(evidence)
    confirmation = _confirmation(evidence, setup)
    tiers = _tiers(setup, answers, confirmation, subject=subject_of(reader.header))
    end = _recorded_end(reader) if end is None else decisive([end, *_own_ends(tiers, notes, at=end.at)])
    claimed = _claimed(evidence, answers)
    return SearchResult(
        tiers=tiers,
        over=setup.search.over,
        low=setup.search.low,
        high=setup.search.high,
        budget=setup.search.budget,
        precision=setup.search.precision,
        seconds=evidence.seconds,
        probes=len(evidence.earlier) + len(evidence.probes),
        restarted_at=evidence.restarted_at,
        confirmation=confirmation,
        cost_per_million_output_tokens=_cost(summary, claimed),
        cost_load=None if claimed is None else claimed.load,
        currency=_currency(summary),
        warnings=(*filter(None, [restart_text(evidence), others_text(evidence)]), *_warnings(summary, notes)),
        complete=_is_complete(setup, evidence),
        recording=str(reader.path),
        exit_code=end.exit_code,
        error=end.reason or None if end.exit_code else None,
    )


def _is_complete(setup: SearchSetup, evidence: Evidence) -> bool:
    return bool(evidence.probes) and setup.planner.next(evidence) is None


def _recorded_end(reader: RecordingReader) -> RunEnd:
    """Return the end in a recording, or why it has none."""
    reason = "the search is still running" if reader.is_live() else "the run process was killed"
    return reader.end or RunEnd(at=0.0, exit_code=int(ExitCode.RUN_FAILED), reason=reason)


def _tiers(
    setup: SearchSetup, answers: Sequence[TierAnswer], confirmation: Confirmation | None, *, subject: str
) -> tuple[TierResult, ...]:
    found = []
    for slo, members, answer in zip(setup.search.slo, setup.tiers.members, answers, strict=True):
        tier = _tier(slo, answer, [setup.tiers.objectives[index] for index in members], setup.search, subject=subject)
        if confirmation is not None and confirmation.load <= answer.low * _EQUAL:
            tier = replace(tier, contradicted=not all(confirmation.seen[index].kept for index in members))
        found.append(tier)
    return tuple(found)


def _tier(
    slo: str, answer: TierAnswer, objectives: Sequence[LoadObjective], search: SearchConfig, *, subject: str
) -> TierResult:
    return TierResult(
        contradicted=False,
        slo=slo,
        kind=answer.kind,
        load=answer.load,
        low=answer.low if answer.low > 0 else None,
        high=answer.high if math.isfinite(answer.high) else None,
        binding=answer.binding or None,
        minutes_left=answer.minutes_left,
        text=answer_sentence(subject, answer, objectives, search),
        binding_text=binding_text(answer, objectives) or None,
    )


def _own_ends(tiers: Sequence[TierResult], notes: Sequence[Note], *, at: float) -> Iterator[RunEnd]:
    """Yield the ends that the answers and the client deserve."""
    for note in notes:
        if note.fact == CLIENT_BOUND:
            yield RunEnd(
                at=at, exit_code=int(ExitCode.THRESHOLDS), reason=f"the client was the bottleneck: {note.text}"
            )
    for tier in tiers:
        if tier.kind in (AnswerKind.WIDE, AnswerKind.DRIFTED):
            yield RunEnd(at=at, exit_code=int(ExitCode.CANNOT_TELL), reason=tier.text)
        elif tier.kind is AnswerKind.BELOW:
            yield RunEnd(at=at, exit_code=int(ExitCode.THRESHOLDS), reason=tier.text)


def _confirmation(evidence: Evidence, setup: SearchSetup) -> Confirmation | None:
    probe = _confirmed(evidence)
    if probe is None:
        return None
    seen = tuple(
        _seen(each, seen_figure(evidence, index, probe=probe, objective=each))
        for index, each in enumerate(setup.tiers.objectives)
    )
    load, seconds = load_text(probe.load, setup.search), probe.end - probe.begin
    figures = ", ".join(
        f"{objective_label(each)}: {part.text}" for each, part in zip(setup.tiers.objectives, seen, strict=True)
    )
    return Confirmation(
        load=probe.load,
        seconds=seconds,
        seen=seen,
        kept=all(part.kept for part in seen),
        text=f"{load} for {formats.clock(round(seconds))}: {figures}",
    )


def _seen(objective: LoadObjective, figure: float) -> ObjectiveSeen:
    known = not math.isnan(figure)
    return ObjectiveSeen(
        objective=objective.text,
        share_within=1 - figure if known and not objective.mean else None,
        mean=figure if known and objective.mean else None,
        kept=is_kept(objective, figure),
        text=figure_text(objective, figure),
    )


def _confirmed(evidence: Evidence) -> Probe | None:
    """Return the newest confirmation; of one that was interrupted the longest part."""
    found = merged(evidence.probes, purposes=(Purpose.CONFIRM,))
    parts = [each for each in found if each.load == found[-1].load]
    return max(parts, key=lambda each: each.end - each.begin, default=None)


def _cost(summary: RunSummary, probe: Probe | None) -> float | None:
    """Return the cost of a million output tokens at the load of a probe."""
    stage = None if probe is None else next((each for each in summary.stages if _began(each, probe)), None)
    cost = None if stage is None else stage.measured.cost
    return None if cost is None else cost.per_million_output_tokens


def _began(stage: StageSummary, probe: Probe) -> bool:
    return stage.start is not None and abs(stage.start - probe.begin) < 1e-6


def _claimed(evidence: Evidence, answers: Sequence[TierAnswer]) -> Probe | None:
    """Return the confirmation, else the probe of the highest load that the narrowest answer contains."""
    if (confirmed := _confirmed(evidence)) is not None:
        return confirmed
    kept = [each for each in evidence.probes if each.purpose is Purpose.MEASURE]
    most = min((answer.load or answer.low for answer in answers), default=0.0)
    return max((each for each in kept if each.load <= most), key=lambda each: each.load, default=None)


def _currency(summary: RunSummary) -> str | None:
    cost = summary.measured.cost
    return None if cost is None else cost.currency


def _warnings(summary: RunSummary, notes: Sequence[Note]) -> tuple[str, ...]:
    """Return what the trust meter says about the whole run, and why the client ended the search."""
    trust = summary.measured.trust
    doubted = trust.verdict in (TrustVerdict.SUSPECT, TrustVerdict.CLIENT_BOUND)
    return (*(note.text for note in notes if note.fact == CLIENT_BOUND), *(trust.reasons if doubted else ()))
