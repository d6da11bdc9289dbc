"""The report of a run as Markdown, for a ticket or a pull request: its answer, whether to trust it, and its figures."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from servetop.core.text.sanitize import sanitize_line
from servetop.reports.markdown import escaped, table
from servetop.reports.page.answer_section import subject_parts, trust_texts, verdict_sentence
from servetop.reports.page.figure_tables import (
    LATENCIES,
    LATENCY_CAPTION,
    STAGE_COLUMNS,
    STATISTICS,
    latency_texts,
    repeat_commands,
    stage_row,
    total_rows,
)
from servetop.reports.page.next_commands import next_commands
from servetop.reports.page.report_page import ReportPage
from servetop.reports.summary.cost_texts import COST_COLUMNS, stage_costs
from servetop.reports.summary.summary_lines import story_markdown


def answer_markdown(page: ReportPage) -> Iterator[str]:
    """Yield the answers of a search, the verdict, what was measured, the story, and the verdict of the trust meter."""
    story = page.summary.story
    headline, *happened = [f"**{escaped(verdict_sentence(page))}**"] if story is None else story_markdown(story)
    yield from (f"**{escaped(each)}**\n" for each in page.texts.answers)
    yield from (headline, "", escaped(" · ".join(subject_parts(page))), *happened)
    first, *others = trust_texts(page.summary)
    yield from ("", f"Trust: **{escaped(page.summary.measured.trust.verdict)}** · {escaped(first)}")
    if others:
        yield from ("", *(f"- {escaped(each)}" for each in others))


def figures_markdown(page: ReportPage) -> Iterator[str]:
    """Yield the tables of totals, latencies and stages, and the commands that go on from here."""
    summary = page.summary
    yield from ("", *table(["", ""], [tuple(map(escaped, each)) for each in total_rows(summary)], align=[":--", "--:"]))
    if latencies := latency_texts(summary):
        rows = [(LATENCIES[metric], *texts) for metric, texts in latencies.items()]
        yield from ("", f"{LATENCY_CAPTION}, in ms:", "")
        yield from table(["", *STATISTICS], rows, align=[":--", *["--:"] * len(STATISTICS)])
    if len(summary.stages) > 1:
        yield from ("", "Stages (latencies in ms):", "")
        stages = [tuple(map(escaped, stage_row(each))) for each in summary.stages]
        yield from table(STAGE_COLUMNS, stages, align=[":--", *["--:"] * (len(STAGE_COLUMNS) - 1)])
    if len(summary.stages) > 1 and (costs := stage_costs(summary.stages)) is not None:
        yield from ("", escaped(f"{costs.title}:"), "")
        figures = [tuple(map(escaped, row)) for row in costs.rows]
        yield from table(COST_COLUMNS, figures, align=[":--", *["--:"] * (len(COST_COLUMNS) - 1)])
    following = {text.removesuffix(":"): shlex.join(words) for text, words in next_commands(page)}
    commands = (following | repeat_commands(page)).items()
    yield from ("", "```sh", *(line for what, command in commands for line in (f"# {what}", sanitize_line(command))))
    yield "```"
