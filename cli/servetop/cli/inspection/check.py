"""`servetop check`: loads the recordings, judges them, and prints the report in every form that was asked for."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Group
from rich.table import Table

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.cli.options.check_options import CheckOptions
from servetop.cli.tables import out_tables, stdout_console
from servetop.core.errors import ServetopError, UsageError, system_reason
from servetop.reports.check.annotations import annotation_lines
from servetop.reports.check.check_json import report_json
from servetop.reports.check.check_markdown import report_markdown
from servetop.reports.check.check_report import CheckItem, CheckReport, ItemKind
from servetop.reports.check.check_runs import check_recordings, wanted_of
from servetop.reports.check.check_watches import check_watches, watches_named
from servetop.reports.check.gate_text import LIMIT_COLUMNS, figures
from servetop.reports.check.junit import junit_xml
from servetop.reports.tables import cell, light_table, titled
from servetop.run import console

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Variable in which GitHub Actions names the file of a step's summary."""
MARKS = {
    CheckOutcome.KEPT: "✓",
    CheckOutcome.BROKEN: "✗",
    CheckOutcome.CANNOT_TELL: "?",
    CheckOutcome.NOT_APPLICABLE: "–",
}
"""Signs that work without colour."""
_WIDTH = 80
_TITLES = {ItemKind.THRESHOLD: "Thresholds", ItemKind.RULE: "Honesty of the figures"}


def run_check(options: CheckOptions, *, environment: Mapping[str, str] = os.environ) -> int:
    """Check recordings, print the report, and return the exit code of the worst item."""
    if options.as_json and options.github:
        raise UsageError("--json and --github exclude each other: both write to standard output")
    report = _checked(options)
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


def _checked(options: CheckOptions) -> CheckReport:
    """Return what was found in recordings of runs, or of watches."""
    if watches := watches_named(options.files):
        idle = {"--baseline": options.baseline, "--max-regression": options.max_regression,
                "--rule": options.rule, "--ignore": options.ignore}  # fmt: skip
        if given := next((name for name, values in idle.items() if values), None):
            raise UsageError(
                f"{given}: {watches[0]} is a recorded watch, whose load was that of others: only --threshold can be "
                "checked (servetop compare shows two side by side)"
            )
        return check_watches(watches, options.threshold)
    wanted = wanted_of(
        max_regression=options.max_regression,
        threshold=options.threshold,
        rule=options.rule,
        ignore=options.ignore,
        start_spread=options.start_spread,
        anyway=options.anyway,
    )
    return check_recordings(options.files, options.baseline, wanted)


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
        raise ServetopError(f"cannot write {path} ({system_reason(error)})") from error


def report_text(report: CheckReport) -> None:
    """Print the report to stdout."""
    console.out(f"run        {', '.join(report.runs)}")
    if report.baselines:
        console.out(f"baseline   {', '.join(report.baselines)}")
    for each in report.changes:
        console.out(f"changed    {each.key}: {each.a} → {each.b}")
    out_tables(*_limits(report))
    for kind in (ItemKind.LIMIT, ItemKind.THRESHOLD, ItemKind.RULE):
        items = report.of_kind(kind)
        if items and kind is not ItemKind.LIMIT:
            console.out("", _TITLES[kind])
        console.out(*(line for item in items for line in _lines(item)))
    for load in report.without_counterpart:
        console.out(f"not compared  {load}")
    console.out("", report.headline)


def _limits(report: CheckReport) -> list[Group]:
    """Return one table of limits for each load."""
    loads: dict[str, list[CheckItem]] = {}
    for item in report.of_kind(ItemKind.LIMIT):
        loads.setdefault(item.load, []).append(item)
    return [titled(load or "Without a counterpart", _table(items)) for load, items in loads.items()]


def _table(items: Sequence[CheckItem]) -> Table:
    table = light_table("", *LIMIT_COLUMNS)
    for item in items:
        if item.gate is not None:
            table.add_row(cell(f"{MARKS[item.outcome]} {item.gate.limit.metric.key}"), *figures(item.gate))
    return table


def _lines(item: CheckItem) -> list[str]:
    """Return the sentence of an item; of a limit, only if it is not kept, because the table has the rest."""
    if item.kind is ItemKind.LIMIT:
        return [] if item.outcome is CheckOutcome.KEPT else _wrapped(f"{item.word}: {item.title}: {item.text}")
    return _wrapped(f"{MARKS[item.outcome]} {item.title}: {item.text}")


def _wrapped(text: str) -> list[str]:
    """Wrap a sentence for a terminal; elsewhere its untrusted parts must not begin a line."""
    if not stdout_console().is_terminal:
        return [text]
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
