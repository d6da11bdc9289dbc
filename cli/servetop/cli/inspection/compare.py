"""`servetop compare`: compares recordings and prints the report."""

from __future__ import annotations

from servetop.analysis.summary.summary_json import plain_object
from servetop.cli.options.compare_options import CompareOptions
from servetop.cli.tables import out_tables, stdout_console
from servetop.core.errors import ExitCode, UsageError
from servetop.reports.comparison.compare_recordings import compare_recordings
from servetop.reports.comparison.comparison_markdown import markdown_lines
from servetop.reports.comparison.comparison_text import comparison_parts
from servetop.run import console


def run_compare(options: CompareOptions) -> int:
    """Compare the first configuration with each other one; OK, whatever the result."""
    if options.as_json and options.markdown:
        raise UsageError("--json and --markdown exclude each other: give one of them")
    report = compare_recordings(
        options.recordings,
        metrics=options.metric,
        margins=options.margin or {},
        start_spread=options.start_spread,
        prices=options.price,
        anyway=options.anyway,
    )
    if options.as_json:
        console.out_json(plain_object(report))
    elif options.markdown:
        console.out(*markdown_lines(report))
    else:
        out_tables(*comparison_parts(report, width=stdout_console().width))
    return int(ExitCode.OK)
