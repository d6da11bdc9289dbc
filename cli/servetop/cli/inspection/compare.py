"""`servetop compare`: compares recordings and prints the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from servetop.analysis.summary.summary_json import plain_object
from servetop.cli.options.compare_options import CompareOptions
from servetop.cli.tables import out_tables, stdout_console
from servetop.core.errors import ExitCode, UsageError
from servetop.reports.comparison.compare_recordings import compare_recordings
from servetop.reports.comparison.compare_watches import compare_watches, watches_compared
from servetop.reports.comparison.comparison_markdown import markdown_lines
from servetop.reports.comparison.comparison_text import comparison_parts
from servetop.reports.comparison.watch_comparison_text import remarks, watch_markdown, watch_parts
from servetop.run import console


def run_compare(options: CompareOptions) -> int:
    """Compare the first configuration with each other one; OK, whatever the result."""
    if options.as_json and options.markdown:
        raise UsageError("--json and --markdown exclude each other: give one of them")
    if watches := watches_compared(options.recordings):
        return _run_watches(watches, options)
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


def _run_watches(paths: Sequence[Path], options: CompareOptions) -> int:
    """Print watches side by side; UsageError for an option about intervals, prices or loads, which they do not have."""
    idle = {"--metric": options.metric, "--margin": options.margin, "--start-spread": options.start_spread,
            "--price": options.price, "--anyway": options.anyway}  # fmt: skip
    if given := next((name for name, value in idle.items() if value not in (None, (), False)), None):
        raise UsageError(f"{given}: watches are shown side by side, without a load of their own: leave it out")
    found = compare_watches(paths)
    if options.as_json:
        console.out_json(plain_object(found))
    elif options.markdown:
        console.out(*watch_markdown(found))
    else:
        out_tables(*watch_parts(found))
        console.out(*remarks(found))
    return int(ExitCode.OK)
