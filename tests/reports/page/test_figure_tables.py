"""The page has the costs that the summary prints: in the totals, and a row for each stage."""

from __future__ import annotations

import contextlib
import re

import pytest

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.figure_tables import costs_table
from servetop.reports.page.html_text import element
from servetop.reports.page.page_html import page_html
from servetop.reports.page.report_page import ReportPage, report_page
from servetop.reports.page.run_markdown import figures_markdown
from servetop.reports.summary.cost_texts import cost_rows, stage_costs

PRICES = ("2.5/h", "1:0.5:2/Mtok")


def sample(*prices: str) -> ReportPage:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        return report_page(reader, name="sample", prices=prices)


@pytest.fixture(scope="module")
def priced() -> ReportPage:
    return sample(*PRICES)


def test_the_page_has_the_costs_of_each_stage_and_the_break_even(priced: ReportPage) -> None:
    text, found = page_html(priced), stage_costs(priced.summary.stages)
    assert found is not None
    assert f"<caption>{found.title}</caption>" in text
    assert len(found.rows) == 4
    for name, *figures in found.rows:
        assert f'<th scope="row">{name}</th>' + "".join(f"<td>{each}</td>" for each in figures) in text
    assert any(re.search(r"\[\d", row[1]) for row in found.rows)
    for name, value in cost_rows(priced.summary.measured.cost):
        assert element("th", name.strip(), scope="row") + element("td", value) in text
    assert "Break-even with 1:0.5:2/Mtok" in text


def test_the_markdown_has_them_too(priced: ReportPage) -> None:
    text, found = "\n".join(figures_markdown(priced)), stage_costs(priced.summary.stages)
    assert found is not None
    assert found.title.split(" (")[0] in text.replace("\\", "")
    assert "per 1,000 requests" in text


def test_without_a_price_or_with_one_stage_there_is_no_table() -> None:
    assert costs_table(sample().summary) is None
    assert "Break-even" not in page_html(sample())
