"""The answer names what sets the limit, and never claims a limit that the run did not reach."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.answer_section import answer_section
from servetop.reports.page.report_page import ReportPage, report_page


@pytest.fixture(scope="module")
def sample() -> ReportPage:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        return report_page(reader, name="sample")


def with_story(page: ReportPage, **fields: Any) -> ReportPage:
    assert page.summary.story is not None
    return replace(page, summary=replace(page.summary, story=replace(page.summary.story, **fields)))


def test_the_memory_sets_the_limit_of_a_full_cache(sample: ReportPage) -> None:
    text = answer_section(sample)
    assert "▸ KV memory</strong></th><td><strong>sets the limit</strong> · 99.8 % used at most of 500 blocks" in text
    assert text.count("sets the limit") == 1
    assert "completed 12.8 req/s while requests waited" in text


@pytest.mark.parametrize(
    ("cause", "marked", "engine"),
    [
        ("headroom", None, "not reached in this run"),
        ("objectives missed", "Latency objective", "not reached in this run"),
        ("batch-bound", "Engine", "no estimate from this run"),
        ("unclear", None, "no estimate from this run"),
        ("client-bound", "Client", "no estimate from this run"),
    ],
)
def test_each_cause_marks_its_row(sample: ReportPage, cause: str, marked: str | None, engine: str) -> None:
    text = answer_section(with_story(sample, cause=cause, capacity=None))
    assert text.count("sets the limit") == (marked is not None)
    assert marked is None or f"▸ {marked}<" in text
    assert engine in text


def test_a_lower_bound_is_said_to_be_one_and_needs_no_confirmation(sample: ReportPage) -> None:
    text = answer_section(with_story(sample, sustainable_is_lower_bound=True))
    assert "at least 11.3 req/s with TTFT ≤ 500 ms" in text
    assert "--request-rate" not in text


def test_without_advice_nothing_is_advised(sample: ReportPage) -> None:
    text = answer_section(with_story(sample, lines=(), advised_max_num_seqs=None, sustainable_rate=None))
    assert "No change is advised by this run." in text
    assert "Nothing happened that needs an explanation." in text


def test_a_recording_without_requests_says_why(sample: ReportPage) -> None:
    failed = replace(sample, summary=replace(sample.summary, story=None, error="the engine did not start"))
    assert "<h1>the engine did not start</h1>" in answer_section(failed)
