"""A recording as Markdown: the answers of a search, the story, and the tables of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.summary.story_summary import StorySummary
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.cli.report.goodput_tables import goodput_markdown
from servetop.cli.report.reference_tables import reference_markdown
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.markdown import escaped
from servetop.reports.summary.run_story import run_story
from servetop.reports.summary.summary_lines import story_markdown


def recording_markdown(reader: RecordingReader, *, answers: Sequence[str] = ()) -> list[str]:
    """Return the lines of a recording; `answers` are the sentences of a search, which come first."""
    story, sweep = run_story(reader)
    return [*(line for each in answers for line in (f"**{escaped(each)}**", "")), *story_and_tables(story, sweep)]


def story_and_tables(story: StorySummary, sweep: SweepVerdict | None) -> list[str]:
    """Return the story, and of a sweep its tables."""
    tables = [] if sweep is None else [*goodput_markdown(sweep), *reference_markdown(sweep)]
    return [*story_markdown(story), *tables]
