"""Judges many simulated runs and reports how often the judgement is right: `python -m tests.judgement --judge`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.diagnosis.run_verdict import RunCause
from servetop.analysis.live_stats import live_stats
from servetop.tui.state.judged_run import JudgedRun
from tests.judgement.judged import ONSET_WITHIN, RATE_WITHIN, JudgedScenario
from tests.judgement.scenario import Cause, Scenario

BOTTLENECKS = {
    Cause.KV: Bottleneck.KV,
    Cause.BATCH: Bottleneck.BATCH,
    Cause.RATE: Bottleneck.QUEUE,
    Cause.LONG_PROMPTS: Bottleneck.LONG_PROMPTS,
    Cause.CLIENT: Bottleneck.CLIENT,
    Cause.FAILING: Bottleneck.FAILING,
}
"""The verdict of now that is right while a cause acts."""
SETTLED = 10.0
"""Seconds after the onset from which the verdict of now must be right: the window of the panels."""
QUIET = (
    Bottleneck.HEADROOM, Bottleneck.WARMING_UP, Bottleneck.IDLE, Bottleneck.STARTING, Bottleneck.DRAINING,
    Bottleneck.UNCLEAR, Bottleneck.CONCURRENCY, Bottleneck.SETTLING,
)  # fmt: skip
"""Verdicts that are no alarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The judgement of one run, in figures that do not need the run any more; NaN where a figure has no meaning."""

    kind: str
    name: str
    right: bool
    verdict: RunCause
    onset_error: float
    knee_error: float
    sustainable_error: float
    kept_excess: float
    """By how much a healthy run claims to have kept more than the sustainable rate, relative."""
    right_now: float
    """Fraction of the seconds in which a cause acts whose verdict of now is right."""
    changes: int
    """Changes of the verdict of now while the cause acts."""
    alarms: float
    """Fraction of the seconds of a healthy run with an alarm."""


def score(scenario: Scenario) -> Score:
    """Judge one run."""
    judged = JudgedScenario(scenario)
    now = verdicts_now(judged)
    start, until = acting_period(scenario)
    acting = [verdict for at, verdict in now if start <= at <= until]
    wanted = BOTTLENECKS.get(scenario.truth.cause)
    healthy = scenario.truth.cause is Cause.HEALTHY
    return Score(
        kind=scenario.kind,
        name=scenario.name,
        right=judged.right_cause,
        verdict=judged.verdict.cause,
        onset_error=judged.onset_error,
        knee_error=judged.knee_error,
        sustainable_error=judged.sustainable_error,
        kept_excess=judged.kept_excess,
        right_now=sum(each is wanted for each in acting) / len(acting) if acting else math.nan,
        changes=sum(before is not after for before, after in itertools.pairwise(acting)),
        alarms=sum(each not in QUIET for _, each in now) / len(now) if healthy and now else math.nan,
    )


def acting_period(scenario: Scenario) -> tuple[float, float]:
    """The first and last time at which the verdict of now has to name the cause; the first is infinite without one."""
    truth = scenario.truth
    if truth.onset is None:
        return math.inf, -math.inf
    end = scenario.run.ticks[-1].end
    return truth.onset + SETTLED, (end if truth.until is None else min(truth.until, scenario.plan_end)) - 1


def verdicts_now(judged: JudgedScenario) -> list[tuple[float, Bottleneck]]:
    """The verdict of every second of a run, as the screen shows it."""
    run, record = judged.scenario.run, judged.record
    shown = JudgedRun(streamed=True)
    shown.update(record.history, run.header.engine, run.log_lines)
    found = []
    for second in range(1, int(record.until) + 1):
        stats = live_stats(record.history, float(second), span=30.0, columns=30)
        stages = [stage for stage in run.stages if stage.at <= second]
        verdict = shown.verdict(stats, record.history, facts=run.header.engine, stages=stages, notes=())
        found.append((float(second), verdict.bottleneck))
    return found


def report(scores: Sequence[Score]) -> list[str]:
    """The tables of the page, in Markdown."""
    kinds = list(dict.fromkeys(each.kind for each in scores))
    rows = [_row(kind, [each for each in scores if each.kind == kind]) for kind in kinds]
    return [
        "| scenarios | runs | right cause | onset within 2 s | right now | changes of the verdict |",
        "|---|---|---|---|---|---|",
        *rows,
        _row("**all**", scores),
        "",
        "| rate of an overload | runs | within 10 % | mean error | worst |",
        "|---|---|---|---|---|",
        _rate_row("knee", [each.knee_error for each in scores]),
        _rate_row("sustainable", [each.sustainable_error for each in scores]),
        "",
        f"Rates that healthy runs claim as kept: {_kept(scores)}.",
        "",
        f"False alarms: {_false_alarms(scores)}.",
        "",
        *_misses(scores),
    ]


def _row(name: str, scores: Sequence[Score]) -> str:
    onsets = [abs(each.onset_error) for each in scores if not math.isnan(each.onset_error)]
    cells = (
        name,
        str(len(scores)),
        share_text(each.right for each in scores),
        share_text(error <= ONSET_WITHIN for error in onsets),
        mean_text(each.right_now for each in scores),
        count_text(each.changes for each in scores if not math.isnan(each.right_now)),
    )
    return f"| {' | '.join(cells)} |"


def _rate_row(name: str, errors: Iterable[float]) -> str:
    known = [error for error in errors if not math.isnan(error)]
    finite = [abs(error) for error in known if math.isfinite(error)]
    if not known:
        return f"| {name} | 0 | – | – | – |"
    unclaimed = len(known) - len(finite)
    runs = f"{len(known)} ({unclaimed} no claim)" if unclaimed else f"{len(known)}"
    worst = f"{max(filter(math.isfinite, known), key=abs):+.1%}" if finite else "–"
    within = share_text(abs(error) <= RATE_WITHIN for error in known)
    return f"| {name} | {runs} | {within} | {mean_text(finite)} | {worst} |"


def _kept(scores: Sequence[Score]) -> str:
    known = [each.kept_excess for each in scores if not math.isnan(each.kept_excess)]
    worst = f"; the highest by {max(known):.1%}" if any(known) else ""
    return f"{len(known)}, of which {sum(excess > 0 for excess in known)} are above the sustainable rate{worst}"


def _false_alarms(scores: Sequence[Score]) -> str:
    healthy = [each for each in scores if not math.isnan(each.alarms)]
    wrong = share_text(not each.right for each in healthy)
    return f"{wrong} of {len(healthy)} healthy runs; {mean_text(each.alarms for each in healthy)} of their seconds"


def _misses(scores: Sequence[Score]) -> list[str]:
    """One line for each run that was judged wrongly in some respect."""
    lines = []
    for each in scores:
        wrong = [f"verdict {each.verdict.value}"] if not each.right else []
        wrong += [f"onset {each.onset_error:+.1f} s"] if abs(each.onset_error) > ONSET_WITHIN else []
        for name, error in (("knee", each.knee_error), ("sustainable", each.sustainable_error)):
            wrong += [f"{name} {_error_text(error)}"] if abs(error) > RATE_WITHIN else []
        wrong += [f"claimed as kept {each.kept_excess:+.1%}"] if each.kept_excess > 0 else []
        lines += [f"- {each.name}: {', '.join(wrong)}"] if wrong else []
    return ["Misses:", "", *lines] if lines else []


def _error_text(error: float) -> str:
    return f"{error:+.0%}" if math.isfinite(error) else "no claim"


def share_text(values: Iterable[bool]) -> str:
    """Return the share of values that are true; a dash without any."""
    listed = list(values)
    return f"{sum(listed) / len(listed):.1%}" if listed else "–"


def mean_text(values: Iterable[float]) -> str:
    """Return the mean of fractions that are known; a dash without any."""
    known = [value for value in values if not math.isnan(value)]
    return f"{sum(known) / len(known):.1%}" if known else "–"


def count_text(values: Iterable[int]) -> str:
    """Return the mean of counts; a dash without any."""
    listed = list(values)
    return f"{sum(listed) / len(listed):.2f}" if listed else "–"
