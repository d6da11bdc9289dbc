"""The report of a run as Markdown answers the questions of a reader who has no other page, and stays inert."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.report_page import ReportPage, report_page
from servetop.reports.page.run_markdown import answer_markdown, figures_markdown
from tests.hostile_recording import write_hostile_recording

ATTACK = "```\n# owned\n<script>owned()</script> [x](javascript:owned) **bold** \x1b]0;x\x07 |"


def page_of(name: str) -> ReportPage:
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        return report_page(reader, name=name)


@pytest.mark.parametrize("name", ["sample", "sample:h200"])
def test_verdict_trust_figures_and_repetition_are_there(name: str) -> None:
    page = page_of(name)
    answer, figures = list(answer_markdown(page)), list(figures_markdown(page))
    story, trust = page.summary.story, page.summary.measured.trust
    assert story is not None
    assert answer[0].replace("\\", "") == f"**{story.headline}**"
    assert [line for line in answer if line.startswith(f"Trust: **{trust.verdict}** · ")]
    if trust.verdict != "ok":
        assert trust.reasons[0] in "\n".join(answer)
    assert f"servetop rerun {name}" in figures
    assert len([line for line in figures if line.startswith("| TTFT |")]) == 1
    assert all(any(line.startswith(f"| {each.label}") for line in figures) for each in page.summary.stages)


def test_each_table_has_as_many_cells_in_each_row() -> None:
    lines = [*answer_markdown(page_of("sample:h200")), *figures_markdown(page_of("sample:h200"))]
    tables = [each.split("\n") for each in "\n".join(lines).split("\n\n") if each.startswith("|")]
    assert len(tables) == 3
    assert [len({line.count("|") for line in table}) for table in tables] == [1, 1, 1]


def test_texts_of_a_hostile_recording_format_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hostile.servetop"
    write_hostile_recording(path, ATTACK)
    page = page_of(str(path))
    lines = "\n".join([*answer_markdown(page), *figures_markdown(page)]).split("\n")
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    assert len(fences) == 2
    assert not [line for line in lines[: fences[0]] if re.search(r"(?<!\\)<|(?<!\\)\[|\x1b", line)]
