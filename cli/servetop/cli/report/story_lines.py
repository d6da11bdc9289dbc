"""The story of a run as text and as Markdown."""

from __future__ import annotations

from servetop.analysis.summary.story_summary import StoryLineSummary, StorySummary
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.reports.markdown import escaped


def story_lines(story: StorySummary) -> list[str]:
    """The headline, then each line with its time; advice is marked by an arrow."""
    return [
        f"verdict    {sanitize_line(story.headline)}",
        *(f"{_mark(line):>9}  {sanitize_line(line.text)}" for line in story.lines),
    ]


def story_markdown(story: StorySummary) -> list[str]:
    """The headline in bold, then a list."""
    items = (f"- {f'{_mark(line)} '.lstrip()}{escaped(line.text)}" for line in story.lines)
    return [f"**{escaped(story.headline)}**", "", *items]


def _mark(line: StoryLineSummary) -> str:
    if line.advice:
        return "→"
    return "" if line.at is None else formats.clock(line.at)
