"""The page shows the parts of TTFT of each stage as the dashboard computes them, and says what is unknown."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.ttft_breakdown import TtftBreakdown, ttft_breakdown
from servetop.cli.main import main
from servetop.core.text import formats
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page import ttft_table
from servetop.reports.page.page_html import page_html
from servetop.reports.page.report_page import ReportPage, report_page
from servetop.reports.page.ttft_table import ttft_section

RESULTS = Path(__file__).parents[2] / "corpus" / "results"
WHOLE = TtftBreakdown(
    total=1.0, client_queue=0.1, network=0.05, engine_queue=0.6, prefill=0.25, unexplained=0.0, requests=9
)


def page_of(path: Path) -> ReportPage:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return report_page(reader, name="sample")


@pytest.fixture(scope="module")
def sample() -> ReportPage:
    return page_of(resolve("sample"))


def shown(page: ReportPage, found: TtftBreakdown, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(ttft_table, "ttft_breakdown", lambda *_: found)
    section = ttft_section(page)
    assert section is not None
    return section


def test_each_stage_has_the_parts_that_the_dashboard_computes(sample: ReportPage) -> None:
    text, history = page_html(sample), sample.record.history
    section = text[text.index("Where TTFT goes") : text.index("What if the limits")]
    rows = re.findall(r"<tr>(<th scope=\"row\">.*?)</tr>", section)
    assert len(rows) == len(sample.summary.stages) == 4
    for row, stage in zip(rows, sample.summary.stages, strict=True):
        assert stage.end is not None
        found = ttft_breakdown(history, history.first_from(stage.start), history.up_to(stage.end))
        figures = re.findall(r"<td>([^<]*)</td>", row)
        assert figures == [formats.seconds(each) for each in (found.total, *found.parts)]


def test_a_bar_is_as_long_as_the_shares_of_its_parts(sample: ReportPage, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(sample, WHOLE, monkeypatch)
    assert re.findall(r'<path d="(M[^"]*)" class="(\w+)"', text.split("<tbody>")[1])[:4] == [
        ("M0.0 6H24.0", "client"), ("M24.0 6H36.0", "network"), ("M36.0 6H180.0", "queue"),
        ("M180.0 6H240.0", "prefill"),
    ]  # fmt: skip
    assert "Not known" not in text


def test_what_the_engine_does_not_export_is_said(sample: ReportPage, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = sample.record.header.engine
    assert engine is not None
    engine = replace(engine, title="Other", not_exported=("queue_seconds_total", "prefill_seconds_total"))
    page = replace(sample, record=replace(sample.record, header=replace(sample.record.header, engine=engine)))
    bare = replace(WHOLE, engine_queue=math.nan, prefill=math.nan, unexplained=0.85)
    text = shown(page, bare, monkeypatch)
    assert "Not known: engine queue, prefill (not exported by Other)." in text
    assert "Not explained" in text
    assert "<td>850 ms</td>" in text


def test_unseparated_times_and_waiting_requests_are_said(sample: ReportPage, monkeypatch: pytest.MonkeyPatch) -> None:
    found = replace(WHOLE, engine_queue=math.nan, prefill=math.nan, at_engine=0.85, pending=7, pending_age=2.0)
    text = shown(sample, found, monkeypatch)
    assert "they are not separated" in text
    assert "At the end of 4 stages requests still waited for their first token" in text
    assert "Not known" not in text


def test_an_imported_run_without_the_data_has_no_such_section(tmp_path: Path) -> None:
    path = tmp_path / "imported.servetop"
    assert main(["import", str(RESULTS / "vllm-rate.json"), "-o", str(path)]) == 0
    page = page_of(path)
    assert ttft_section(page) is None
    assert "Where TTFT goes" not in page_html(page)
