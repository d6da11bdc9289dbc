"""`servetop check`: loads the recordings, judges them, and prints the report in every form that was asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from servetop.cli.check.check_text import report_text
from servetop.cli.options.check_options import CheckOptions
from servetop.core.errors import ServetopError, UsageError
from servetop.reports.check.annotations import annotation_lines
from servetop.reports.check.check_json import report_json
from servetop.reports.check.check_markdown import report_markdown
from servetop.reports.check.check_report import CheckReport
from servetop.reports.check.check_runs import check_recordings, wanted_of
from servetop.reports.check.junit import junit_xml
from servetop.run import console

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Variable in which GitHub Actions names the file of a step's summary."""


def run_check(options: CheckOptions, *, environment: Mapping[str, str] = os.environ) -> int:
    """Check recordings, print the report, and return the exit code of the worst item."""
    if options.as_json and options.github:
        raise UsageError("--json and --github exclude each other: both write to standard output")
    wanted = wanted_of(
        max_regression=options.max_regression,
        threshold=options.threshold,
        rule=options.rule,
        ignore=options.ignore,
        start_spread=options.start_spread,
        anyway=options.anyway,
    )
    report = check_recordings(options.files, options.baseline, wanted)
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
