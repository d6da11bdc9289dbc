"""`servetop summary`: the figures of a recording, or its story."""

from __future__ import annotations

from servetop.cli.options.tool_options import SummaryOptions
from servetop.cli.report.report import print_recording, print_story
from servetop.core.errors import UsageError


def run_summary_command(options: SummaryOptions) -> int:
    """Print what this command asks for; UsageError for two forms at once."""
    if options.markdown and options.as_json:
        raise UsageError("--json and --markdown exclude each other: give one of them")
    if options.story or options.markdown:
        return print_story(options.file, markdown=options.markdown, as_json=options.as_json)
    return print_recording(
        options.file, as_json=options.as_json, percentiles=options.metric_percentiles, prices=options.price
    )
