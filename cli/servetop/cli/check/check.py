"""`servetop check`: loads the recordings, judges them, and prints the report in every form that was asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.comparison import Comparison, ComparisonOptions, compare
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.honesty.honesty import chosen_rules, judge_honesty, worst_by_rule
from servetop.analysis.honesty.rule_result import TAIL_FROM, RuleResult, RuleState
from servetop.analysis.honesty.stage_rules import HonestyRule, too_few_samples
from servetop.cli.check.annotations import annotation_lines
from servetop.cli.check.check_json import report_json
from servetop.cli.check.check_markdown import report_markdown
from servetop.cli.check.check_text import report_text
from servetop.cli.check.checked_run import (
    CheckedRun,
    known_changes,
    load_checked_runs,
    other_cause_warnings,
    refuse_unlike,
    state_warnings,
)
from servetop.cli.check.junit import junit_xml
from servetop.cli.options.check_options import CheckOptions
from servetop.core.errors import ServetopError, UsageError
from servetop.reports.check.check_report import CheckItem, CheckReport, gate_items, rule_items, threshold_items
from servetop.reports.check.thresholds import Threshold, parse_threshold, percentiles_needed
from servetop.reports.gates.regression_gate import judge_regressions, same_load
from servetop.reports.gates.regression_limit import RegressionLimit, parse_regression_limit
from servetop.run import console

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Variable in which GitHub Actions names the file of a step's summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to check, parsed and valid."""

    limits: Sequence[RegressionLimit]
    thresholds: Sequence[Threshold]
    rules: Sequence[HonestyRule]
    anyway: bool
    start_spread: StartSpread | None = None
    """What is assumed where there are too few starts; None for that of the runs."""


def run_check(options: CheckOptions, *, environment: Mapping[str, str] = os.environ) -> int:
    """Check recordings, print the report, and return the exit code of the worst item."""
    wanted = _wanted(options)
    percentiles = percentiles_needed(options.threshold) if wanted.thresholds else None
    runs = load_checked_runs(options.files, compared=bool(options.baseline), percentiles=percentiles)
    baselines = load_checked_runs(options.baseline, compared=True, objectives=runs[0].header.config.goodput or None)
    report = check_runs(runs, baselines, wanted)
    _write_reports(report, options, environment)
    for warning in report.warnings:
        console.status(f"warning: {warning}")
    if options.as_json:
        console.out_json(report_json(report))
    else:
        report_text(report)
    if options.github:
        console.out_commands(*annotation_lines(report))
    if report.reason:
        console.message(report.reason)
    return int(report.exit_code)


def _wanted(options: CheckOptions) -> Wanted:
    """The parsed options; UsageError for any that do not go together."""
    limits = [parse_regression_limit(text) for text in options.max_regression]
    if bool(limits) != bool(options.baseline):
        missing = "--max-regression" if options.baseline else "--baseline"
        raise UsageError(f"give {missing} too: a comparison needs both")
    twice = next((each for each in limits if [other.key for other in limits].count(each.key) > 1), None)
    if twice is not None:
        raise UsageError(f"--max-regression has two limits for {twice.key}: give one")
    if options.as_json and options.github:
        raise UsageError("--json and --github exclude each other: both write to standard output")
    return Wanted(
        limits=limits,
        thresholds=[parse_threshold(text) for text in options.threshold],
        rules=chosen_rules(options.rule, options.ignore),
        anyway=options.anyway,
        start_spread=None if options.start_spread is None else StartSpread.everywhere(options.start_spread),
    )


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
    """The comparison of the metrics with limits; UsageError if no load is on both sides."""
    metrics = {limit.metric.key: limit.metric for limit in wanted.limits}
    chosen = ComparisonOptions(metrics=tuple(metrics.values()), start_spread=wanted.start_spread)
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
        if each.state is RuleState.BROKEN
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


def _write_reports(report: CheckReport, options: CheckOptions, environment: Mapping[str, str]) -> None:
    """Write the files that were asked for, by an option or by GitHub Actions."""
    if options.junit is not None:
        _written(options.junit, junit_xml(report), mode="w")
    named = environment.get(STEP_SUMMARY, "")
    summary = options.step_summary or (Path(named) if named else None)
    if summary is not None:
        _written(summary, report_markdown(report), mode="a")


def _written(path: Path, text: str, *, mode: str) -> None:
    """Write or append to a file; ServetopError if that fails."""
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ServetopError(f"cannot write {path} ({(error.strerror or str(error)).lower()})") from error
