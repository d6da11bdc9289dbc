"""Checks recordings against baselines, thresholds and the rules of their figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.honesty import chosen_rules, judge_honesty, worst_by_rule
from servetop.analysis.checks.rule_result import TAIL_FROM, RuleResult
from servetop.analysis.checks.stage_rules import HonestyRule, too_few_samples
from servetop.analysis.checks.thresholds import Threshold, parse_threshold, percentiles_needed
from servetop.analysis.comparison.comparison import Comparison, ComparisonOptions, compare
from servetop.analysis.comparison.measured_difference import BASELINE_AND_RUN
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.core.errors import UsageError
from servetop.reports.check.check_report import CheckItem, CheckReport, gate_items, rule_items, threshold_items
from servetop.reports.check.checked_run import (
    CheckedRun,
    known_changes,
    load_checked_runs,
    other_cause_warnings,
    refuse_unlike,
    state_warnings,
)
from servetop.reports.check.regression_gate import judge_regressions, same_load
from servetop.reports.check.regression_limit import RegressionLimit, parse_regression_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to check, parsed and valid."""

    limits: Sequence[RegressionLimit] = ()
    thresholds: Sequence[Threshold] = ()
    rules: Sequence[HonestyRule] = ()
    anyway: bool = False
    """Whether unlike workloads are compared, with a warning."""
    start_spread: StartSpread | None = None
    """What is assumed where there are too few starts; None for that of the runs."""


def wanted_of(
    *,
    max_regression: Sequence[str] = (),
    threshold: Sequence[str] = (),
    rule: Sequence[str] = (),
    ignore: Sequence[str] = (),
    start_spread: float | None = None,
    anyway: bool = False,
) -> Wanted:
    """Parse what to check, as `servetop check` takes it; UsageError for what is invalid or given twice."""
    limits = [parse_regression_limit(text) for text in max_regression]
    twice = next((each for each in limits if [other.key for other in limits].count(each.key) > 1), None)
    if twice is not None:
        raise UsageError(f"--max-regression has two limits for {twice.key}: give one")
    return Wanted(
        limits=limits,
        thresholds=[parse_threshold(text) for text in threshold],
        rules=chosen_rules(rule, ignore),
        anyway=anyway,
        start_spread=None if start_spread is None else StartSpread.everywhere(start_spread),
    )


def check_recordings(runs: Sequence[str], baselines: Sequence[str], wanted: Wanted) -> CheckReport:
    """Check recordings, which are starts of one configuration, against those of a baseline; names as of `servetop ls`.

    UsageError for limits without a baseline, or a baseline without limits; RecordingError for a damaged recording.
    """
    if bool(wanted.limits) != bool(baselines):
        missing = "--max-regression" if baselines else "--baseline"
        raise UsageError(f"give {missing} too: a comparison needs both")
    percentiles = percentiles_needed(wanted.thresholds) if wanted.thresholds else None
    checked = load_checked_runs(runs, compared=bool(baselines), percentiles=percentiles)
    objectives = checked[0].header.config.goodput or None
    return check_runs(checked, load_checked_runs(baselines, compared=True, objectives=objectives), wanted)


def check_runs(runs: Sequence[CheckedRun], baselines: Sequence[CheckedRun], wanted: Wanted) -> CheckReport:
    """Judge the runs against the baselines, the thresholds and the rules."""
    warnings = state_warnings((*runs, *baselines))
    if baselines:
        warnings += refuse_unlike(runs, baselines, anyway=wanted.anyway)
        warnings += other_cause_warnings(baselines[0], runs[0])
    results = {run.path: judge_honesty(run.stages, rules=wanted.rules) for run in (*runs, *baselines)}
    comparison = Comparison(stages=())
    items: list[CheckItem] = []
    if baselines:
        comparison = _compared(runs, baselines, wanted)
        loads = {stage.index: stage.load for run in reversed(runs) for stage in run.arm.stages}
        _refuse_unknown_stages({limit.stage for limit in wanted.limits}, known=set(loads), of=runs[0])
        obstacle = _obstacle(runs, baselines, results)
        gates = judge_regressions(comparison, wanted.limits, loads=loads, obstacle=obstacle)
        items += gate_items(gates, loads=loads)
    for threshold in wanted.thresholds:
        for run in runs:
            _refuse_unknown_stages({threshold.stage}, known={each.stage for each in run.stages}, of=run)
            recording = run.name if len(runs) > 1 else ""
            items += threshold_items(threshold, run.summary, rules=results[run.path], recording=recording)
    alone = not items
    for run in (*runs, *baselines):
        recording = run.name if len(results) > 1 else ""
        several, worst = len(run.stages) > 1, worst_by_rule(results[run.path])
        items += rule_items(worst, recording=recording, several_stages=several, decides=alone)
    return CheckReport(
        runs=[str(run.path) for run in runs],
        baselines=[str(run.path) for run in baselines],
        items=items,
        warnings=warnings,
        changes=known_changes(baselines[0], runs[0]) if baselines else (),
        without_counterpart=[
            *(f"{load.label} (only in the baseline)" for load in comparison.only_a),
            *(f"{load.label} (only in the run)" for load in comparison.only_b),
        ],
    )


def _compared(runs: Sequence[CheckedRun], baselines: Sequence[CheckedRun], wanted: Wanted) -> Comparison:
    """Return the comparison of the metrics with limits; UsageError if no load is on both sides."""
    metrics = {limit.metric.key: limit.metric for limit in wanted.limits}
    chosen = ComparisonOptions(
        metrics=tuple(metrics.values()), start_spread=wanted.start_spread, names=BASELINE_AND_RUN
    )
    comparison = compare([run.arm for run in baselines], [run.arm for run in runs], chosen)
    if not comparison.stages:
        loads = [", ".join(load.label for load in side) or "none" for side in (comparison.only_a, comparison.only_b)]
        raise UsageError(f"no load is on both sides: the baseline has {loads[0]}; the run has {loads[1]}")
    return comparison


def _refuse_unknown_stages(stages: set[int | None], *, known: set[int], of: CheckedRun) -> None:
    unknown = sorted(stage for stage in stages if stage is not None and stage not in known)
    if unknown:
        numbers = ", ".join(map(str, sorted(known))) or "none"
        raise UsageError(f"{of.path} has no stage {unknown[0]}: its stages with load are {numbers}")


def _obstacle(
    runs: Sequence[CheckedRun], baselines: Sequence[CheckedRun], results: Mapping[Path, Sequence[RuleResult]]
) -> Callable[[StageLoad, RegressionLimit], str]:
    """Return a function from a load and a limit to what makes its figures worthless; empty without such a thing.

    That is a broken rule that the figures depend on, or a percentile below p99 of fewer requests than give it a bound.
    """
    sides = [("run", each) for each in runs] + [("baseline", each) for each in baselines]
    counts = [(side, _load_of(run, each.stage), each.compared_completed) for side, run in sides for each in run.stages]
    broken = [
        (side, _load_of(run, each.stage), each)
        for side, run in sides
        for each in results[run.path]
        if each.state is CheckOutcome.BROKEN
    ]

    def why(load: StageLoad, limit: RegressionLimit) -> str:
        for side, at, result in broken:
            if at is not None and same_load(load, at) and result.bearing.covers(limit.metric.key):
                return f"{result.name} is broken in the {side}: {result.text}"
        percentile = limit.metric.percentile
        if percentile is not None and percentile < TAIL_FROM:
            for side, at, completed in counts:
                if at is not None and same_load(load, at) and (few := too_few_samples(completed, percentile)):
                    return f"too few requests in the {side}: {few}"
        return ""

    return why


def _load_of(run: CheckedRun, stage: int | None) -> StageLoad | None:
    return next((each.load for each in run.arm.stages if each.index == stage), None)
