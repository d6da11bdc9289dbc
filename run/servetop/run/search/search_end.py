"""How a search ends: with the exit code and the headline that its answers deserve."""

from __future__ import annotations

from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.events import RunEnd
from servetop.recordings.read.reader import RecordingReader


def searched_end(reader: RecordingReader, summary: RunSummary | None, end: RunEnd) -> tuple[RunEnd, str]:
    """Return the end of the run of a search, and its headline: the answer as far as it is known."""
    from servetop.reports.summary.summary import run_summary
    from servetop.run.search.search_result import search_result  # not for other runs

    result = search_result(reader, summary or run_summary(reader, end=end), end=end)
    found = RunEnd(at=end.at, exit_code=result.exit_code, reason=result.error or end.reason)
    return found, "; ".join(tier.text for tier in result.tiers)
