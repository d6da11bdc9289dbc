"""Compares what a watch said of a simulated run with the truth, and with what a judge of the run itself says."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.summary.watch_types import WatchedLimit
from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from servetop.simulator.virtual_run.virtual_run import VirtualRun
from tests.judgement.counted_answers import CountedAnswers, server_failures
from tests.judgement.failing_servers import ABORTS, WRONG
from tests.judgement.judged import JudgedScenario
from tests.judgement.judging import BOTTLENECKS, QUIET, acting_period, verdicts_now
from tests.judgement.queue_truth import SHORT_QUEUE, lasting_queues, limit_shares
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.watched_scenario import WatchedScenario, watched

LIMITS = {
    Cause.KV: Bottleneck.KV.value,
    Cause.BATCH: Bottleneck.BATCH.value,
    Cause.RATE: Bottleneck.WAITING.value,
}
"""The limit that a watch can name, by the cause of an overload."""
ACTED = {
    AdmissionLimit.KV: Bottleneck.KV.value,
    AdmissionLimit.BATCH: Bottleneck.BATCH.value,
    AdmissionLimit.BUDGET: Bottleneck.WAITING.value,
}
"""What it can know of what kept requests waiting."""
_MUCH = 0.25
"""Fraction of the time of a queue for which a limit must have kept it waiting, to be a true name for it."""
ALARMS = (
    Bottleneck.FAILING,
    Bottleneck.KV,
    Bottleneck.BATCH,
    Bottleneck.WAITING,
    Bottleneck.NO_METRICS,
    Bottleneck.NOT_JUDGED,
)
_BY_STATUS = 0.5
_ALARMS = tuple(each.value for each in ALARMS)
_ACTED_FOR = 0.5
"""Fraction of the time of a limit that is named for which it must have kept requests waiting, to be true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How right one judgement of a run is; NaN where a figure has no meaning."""

    right: bool
    onset_error: float
    """Seconds by which the onset is later than the true one, or than its first sign if that is nearer."""
    right_now: float
    """Fraction of the seconds in which the cause acts whose verdict of now is right."""
    changes: int
    """Changes of the verdict of now in those seconds."""
    alarms: float
    """Fraction of the seconds with an alarm, of a run in which nothing but clients may fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchScore:
    """A run as judged by a watch of its server, and with the data of its client."""

    kind: str
    name: str
    headline: str
    """What the summary of the watch says."""
    reported_after: float
    """Seconds from the onset until an episode of the right kind was reported; NaN if none was, or none is expected."""
    expected: bool
    """Whether requests waited at the engine for a limit that a watch should name."""
    healthy: bool
    clients_fail: bool
    """Whether the only failures are those of clients, so that every alarm is false."""
    watch: Judged
    run: Judged | None
    """None where clients abort requests: a run ends otherwise."""


def true_limits(scenario: Scenario) -> frozenset[str]:
    """Return the limits of which a watch should name one; none for a run in which none need be named.

    Of long prompts a watch sees what they wait for: KV blocks, a slot, or their turn in the prefill.
    """
    cause = scenario.truth.cause
    if cause is Cause.FAILING:  # what clients send wrong is no failure, and a crashed server counts nothing
        return frozenset({Bottleneck.FAILING.value} if any(server_failures(scenario.run)) else ())
    if cause is not Cause.LONG_PROMPTS:
        return frozenset({LIMITS[cause]} if cause in LIMITS else ())
    shares = [limit_shares(scenario.run, each.start, each.until) for each in lasting_queues(scenario.run)]
    return frozenset(ACTED[limit] for each in shares for limit in ACTED if each[limit] >= _MUCH)


def serves_all(scenario: Scenario) -> bool:
    """Whether the server serves all requests that it can, so that any limit or episode is a false alarm."""
    return scenario.truth.cause is Cause.HEALTHY or scenario.kind == WRONG


def true_onsets(scenario: Scenario) -> list[float]:
    """Return the times that are right for the onset: that of the cause, its first sign, and that of the queue of long
    prompts, before which a watch sees nothing.
    """
    truth = scenario.truth
    queues = [each.start for each in lasting_queues(scenario.run)[:1]] if truth.cause is Cause.LONG_PROMPTS else []
    return [each for each in (truth.onset, truth.first_sign, *queues) if each is not None]


def watch_score(scenario: Scenario) -> WatchScore:
    """Judge one run in both ways; half of the servers count their answers, the others what their engines finish."""
    counts = CountedAnswers(scenario.run, by_status=Random(scenario.name).random() < _BY_STATUS)
    with tempfile.TemporaryDirectory() as folder:
        seen = watched(scenario.run, Path(folder) / "watch.servetop", counts=counts)
    return WatchScore(
        kind=scenario.kind,
        name=scenario.name,
        headline=seen.headline,
        reported_after=_reported_after(scenario, seen),
        expected=bool(true_limits(scenario)),
        healthy=scenario.kind == "healthy",
        clients_fail=scenario.kind in (ABORTS, WRONG),
        watch=_of_watch(scenario, seen),
        run=None if scenario.kind == ABORTS else _of_run(scenario),
    )


def _of_watch(scenario: Scenario, seen: WatchedScenario) -> Judged:
    wanted = true_limits(scenario)
    onset = min((each.onset for each in seen.limits if each.name in wanted), default=None)
    return _judged(
        scenario,
        right=is_right(scenario, seen),
        onset=onset,
        onsets=true_onsets(scenario),
        wanted=wanted,
        now=seen.states,
        alarms=[state in _ALARMS for _, state in seen.states],
    )


def _of_run(scenario: Scenario) -> Judged:
    judged = JudgedScenario(scenario)
    now = verdicts_now(judged)
    wanted = BOTTLENECKS.get(scenario.truth.cause)
    return _judged(
        scenario,
        right=judged.right_cause,
        onset=judged.verdict.onset,
        onsets=[each for each in (scenario.truth.onset, scenario.truth.first_sign) if each is not None],
        wanted=frozenset() if wanted is None else frozenset({wanted.value}),
        now=[(at, each.value) for at, each in now],
        alarms=[each not in QUIET for _, each in now],
    )


def _judged(
    scenario: Scenario,
    *,
    right: bool,
    onset: float | None,
    onsets: Sequence[float],
    wanted: frozenset[str],
    now: Sequence[tuple[float, str]],
    alarms: Sequence[bool],
) -> Judged:
    start, until = acting_period(scenario)
    acting = [state for at, state in now if start <= at <= until] if wanted else []
    return Judged(
        right=right,
        onset_error=math.nan if onset is None or not onsets else min((onset - each for each in onsets), key=abs),
        right_now=sum(each in wanted for each in acting) / len(acting) if acting else math.nan,
        changes=sum(before != after for before, after in itertools.pairwise(acting)),
        alarms=sum(alarms) / len(alarms) if alarms and serves_all(scenario) else math.nan,
    )


def is_right(scenario: Scenario, seen: WatchedScenario) -> bool:
    """Whether the limit named for longest is the true one; without one, whether all named ones are true."""
    if wanted := true_limits(scenario):
        longest = max(seen.limits, key=lambda each: each.seconds, default=None)
        return longest is not None and longest.name in wanted
    if serves_all(scenario):
        return not seen.limits and not seen.reported
    return all(_acted(scenario.run, each) for each in seen.limits)


def _acted(run: VirtualRun, named: WatchedLimit) -> bool:
    """Whether requests waited for a limit, or for anything, for at least half of the time for which it is named."""
    anything = named.name == Bottleneck.WAITING.value
    states = run.admissions
    ends = [*(state.at for state in states[1:]), run.ticks[-1].end]
    seconds = sum(
        end - state.at
        for state, end in zip(states, ends, strict=True)
        if state.waiting > SHORT_QUEUE and (anything or ACTED.get(state.limit) == named.name)
    )
    return seconds >= _ACTED_FOR * named.seconds


def _reported_after(scenario: Scenario, seen: WatchedScenario) -> float:
    """Seconds from the latest of the true onsets."""
    wanted = true_limits(scenario)
    reported = next((at for at, change in seen.reported if change.kind in wanted), None)
    return math.nan if reported is None else reported - max(true_onsets(scenario))
