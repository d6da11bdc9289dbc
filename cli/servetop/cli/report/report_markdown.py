"""A recording as Markdown: the answer, trust and figures of a run with the tables of a sweep, or only its story."""

from __future__ import annotations

from servetop.analysis.summary.story_summary import StorySummary
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.cli.report.goodput_tables import goodput_markdown
from servetop.cli.report.reference_tables import reference_markdown
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.report_page import report_page
from servetop.reports.page.run_markdown import answer_markdown, figures_markdown
from servetop.reports.page.watch_markdown import watch_report_lines
from servetop.reports.summary.summary_lines import story_markdown
from servetop.run.search.result_page import search_texts


def recording_markdown(reader: RecordingReader, *, name: str) -> list[str]:
    """Return the lines of a recording, whose commands call it `name`."""
    if reader.header.config.watch is not None:
        return watch_report_lines(reader)
    page = report_page(reader, name=name, texts=search_texts(reader))
    return [*answer_markdown(page), *_sweep_tables(page.summary.sweep), *figures_markdown(page)]


def story_and_tables(story: StorySummary, sweep: SweepVerdict | None) -> list[str]:
    """Return the story, and of a sweep its tables."""
    return [*story_markdown(story), *_sweep_tables(sweep)]


def _sweep_tables(sweep: SweepVerdict | None) -> list[str]:
    return [] if sweep is None else [*goodput_markdown(sweep), *reference_markdown(sweep)]
