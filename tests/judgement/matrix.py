"""Judges each run once for each observation of its engine, and scores everything that a user reads about it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from servetop.analysis.live_stats import live_stats
from servetop.tui.state.judged_run import JudgedRun
from servetop.tui.state.replicas import ReplicaHistory
from tests.judgement.judged import JudgedScenario
from tests.judgement.known_truth import KnownTruth
from tests.judgement.live_checks import CAUSES
from tests.judgement.observed import PAGE_AGES, observations_of
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.statement_checks import check, onset_error
from tests.judgement.statements import Statement, UnknownStatementError, statements_of

LIVE_MOMENTS = 3
"""Times at which the verdict line of a run is read, drawn from the scenario's name."""
RATES = ("sustainable about", "sustainable at least", "sustainable below")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run says as one observer recorded it."""

    kind: str
    name: str
    observation: str
    false: tuple[str, ...]
    """The false statements, each with the time at which it was read if it was on the verdict line."""
    verdict: Cause | None
    """The cause that the headline names."""
    cause: Cause
    named: bool
    """Whether it is the true one."""
    onset_error: float
    """Seconds; NaN if no onset is named or the cause is wrong."""
    lower_bounds: int
    """Lower bounds of the sustainable rate that could be checked."""
    false_bounds: int
    unknown: tuple[str, ...]
    """Sentences that no pattern knows, so that they are not scored."""
    rates: int
    """Sustainable rates that could be checked within a quarter."""
    right_rates: int

    @property
    def score(self) -> str:
        """`false` if any statement is, `true` if the cause is named as well, else `silent`."""
        return "false" if self.false else "true" if self.named else "silent"


def outcomes(scenario: Scenario) -> Iterator[Outcome]:
    """Judge a run with every observation that it can have."""
    truth = KnownTruth(scenario)
    for name in observations_of(scenario.run):
        yield judge_observed(scenario, truth, name=name)


def judge_observed(scenario: Scenario, truth: KnownTruth, *, name: str) -> Outcome:
    """Judge a run as one observer recorded it."""
    judged = observed_run(scenario, name)
    said, unknown = _read(judged, page_age=PAGE_AGES.get(name, 0.0))
    checked = [(each, check(each, truth)) for each in said]
    headline = said[0] if said and said[0].name == "cause" else None
    verdict = CAUSES.get((headline and headline.values["cause"]) or "")
    named = verdict is truth.cause
    rates = {each.text: verdict for each, verdict in checked if each.name == RATES[0]}
    bounds = {each.text: verdict for each, verdict in checked if each.name == RATES[1]}
    return Outcome(
        kind=scenario.kind,
        name=scenario.name,
        observation=name,
        false=tuple(dict.fromkeys(_told(each) for each, verdict in checked if verdict is False)),
        verdict=verdict,
        cause=truth.cause,
        named=named,
        onset_error=onset_error(headline, truth) if named and headline and headline.values["at"] else math.nan,
        lower_bounds=sum(each is not None for each in bounds.values()),
        false_bounds=sum(each is False for each in bounds.values()),
        unknown=tuple(dict.fromkeys(unknown)),
        rates=sum(each is not None for each in rates.values()),
        right_rates=sum(each is True for each in rates.values()),
    )


def observed_run(scenario: Scenario, name: str) -> JudgedScenario:
    """Return a run as one observer recorded it."""
    return JudgedScenario(dataclasses.replace(scenario).keeping(observations_of(scenario.run)[name](scenario.run)))


def statements_about(judged: JudgedScenario, name: str) -> list[Statement]:
    """Return all that is said of an observed run; UnknownStatementError if a part of it matches no pattern."""
    said, unknown = _read(judged, page_age=PAGE_AGES.get(name, 0.0))
    if unknown:
        raise UnknownStatementError("; ".join(unknown))
    return said


def _told(said: Statement) -> str:
    """The statement, and for the verdict line when it was read; the same in headline and advice is one."""
    text = said.text.removeprefix("try ")
    return f"{text} (at {said.at:.0f} s)" if said.live else text


def _read(judged: JudgedScenario, *, page_age: float) -> tuple[list[Statement], list[str]]:
    """All statements, those of the headline first, and the sentences that no pattern knows."""
    said: list[Statement] = []
    unknown: list[str] = []
    for text, at, live in (*_story(judged), *_verdict_lines(judged)):
        try:
            said += statements_of(text, at=at, live=live, page_age=page_age)
        except UnknownStatementError as error:
            unknown.append(str(error))
    return said, unknown


def _story(judged: JudgedScenario) -> Iterator[tuple[str, float | None, bool]]:
    story = judged.story
    yield story.headline, None, False
    for line in story.lines:
        yield line.text, line.at, False


def _verdict_lines(judged: JudgedScenario) -> Iterator[tuple[str, float, bool]]:
    """The parts of the verdict line at some moments, each judged from what is recorded up to then."""
    run, record = judged.scenario.run, judged.record
    random = Random(judged.scenario.name)
    shown, replicas = JudgedRun(streamed=True), ReplicaHistory()
    replicas.fold(sorted(run.replica_samples, key=lambda each: each.scrape_end))
    moments = sorted(random.sample(range(5, max(int(record.until), 5 + LIVE_MOMENTS)), LIVE_MOMENTS))
    for at in (float(each) for each in moments if each <= record.until):
        until = record.history.up_to(at)
        shown.update(record.history, run.header.engine, run.log_lines, stages=run.stages, until=until)
        stats = live_stats(record.history, at, span=30.0, columns=30, objectives=run.header.config.goodput)
        stages = [stage for stage in run.stages if stage.at <= at]
        facts, newest = run.header.engine, replicas.newest(at)
        line = shown.verdict(stats, record.history, facts=facts, stages=stages, notes=(), replicas=newest)
        for part in (line.bottleneck.value, *line.evidence, *([line.advice] if line.advice else [])):
            yield part, at, True
