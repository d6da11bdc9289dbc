"""The answer of a search on the terminal or as JSON."""

from __future__ import annotations

from servetop.analysis.summary.summary_json import plain_object
from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.text.sanitize import sanitize_line
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.search.answer_line import answer_line
from servetop.run.search.result_page import load_used
from servetop.run.search.search_result import SearchResult, search_result


def search_lines(result: SearchResult) -> list[str]:
    """Return a sentence for each tier, and the lines that support it."""
    lines = [f"answer     {answer_line(result, tier)}" for tier in result.tiers]
    if result.confirmation is not None:
        label = "confirmed " if result.confirmation.kept else "not kept  "
        lines.append(f"{label} {result.confirmation.text}")
    lines += [f"warning    {text}" for text in result.warnings]
    lines.append(f"load       {load_used(result)}")
    if not result.complete:
        lines.append(f"unfinished to continue: servetop search --resume {result.recording}")
    return [sanitize_line(line) for line in lines]


def print_search(reader: RecordingReader, summary: RunSummary, *, as_json: bool) -> None:
    """Print the answer of a search, and where it is recorded."""
    result = search_result(reader, summary)
    if as_json:
        console.out_json(plain_object(result))
    else:
        console.out(*search_lines(result), f"recording  {result.recording}")
