"""The answer names what sets the limit, and never claims a limit that the run did not reach."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.answer_section import answer_section, trust_texts
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


def test_the_capacity_explains_both_intervals_of_the_rate(sample: ReportPage) -> None:
    story = sample.summary.story
    assert story is not None
    assert story.sustainable_rate_range is not None
    low, high = (f"{each:.3g}" for each in story.sustainable_rate_range)
    assert f"sustainable {low} to {high} req/s" in story.headline
    text = answer_section(sample)
    assert f"9.02 to 12.7 with a probability of 90\u00a0%, {low} to {high} with a probability of 99\u00a0%" in text


def test_a_rate_that_is_not_known_says_so_and_why(sample: ReportPage) -> None:
    text = answer_section(with_story(sample, sustainable_rate=None, cause="client-bound"))
    assert "Latency objective</th><td>not known from this run: the client limited the load, not the engine<" in text
    text = answer_section(with_story(sample, sustainable_rate=None, cause="headroom"))
    assert "Latency objective</th><td>not known from this run<" in text
    two = replace(sample.summary.set_up, goodput=("ttft:500", "tpot:50"))
    unknown = with_story(sample, sustainable_rate=None)
    text = answer_section(replace(unknown, summary=replace(unknown.summary, set_up=two)))
    assert "with limits besides TTFT no rate is estimated" in text


def test_the_heading_has_a_remark_unless_the_figures_can_be_trusted(sample: ReportPage) -> None:
    assert "trust: " not in answer_section(sample)
    measured = sample.summary.measured
    suspect = replace(measured, trust=replace(measured.trust, verdict="suspect"))
    text = answer_section(replace(sample, summary=replace(sample.summary, measured=suspect)))
    assert '<strong class="trust suspect">trust: suspect</strong></p></header>' in text


def test_why_the_only_stage_of_a_run_had_no_steady_state_is_said_without_its_name(sample: ReportPage) -> None:
    stage = sample.summary.stages[0]
    short = replace(stage, steady=replace(stage.steady, start=None, end=None, reason="the stage is too short"))
    summary = replace(sample.summary, stages=(short,))
    assert trust_texts(summary)[-1] == "no steady state: the stage is too short"
    assert "<li>no steady state: the stage is too short</li>" in answer_section(replace(sample, summary=summary))


def test_without_advice_nothing_is_advised(sample: ReportPage) -> None:
    text = answer_section(with_story(sample, lines=(), advised_max_num_seqs=None, sustainable_rate=None))
    assert "No change is advised by this run." in text
    assert "Nothing happened that needs an explanation." in text


def test_a_recording_without_requests_says_why(sample: ReportPage) -> None:
    failed = replace(sample, summary=replace(sample.summary, story=None, error="the engine did not start"))
    assert "<h1>the engine did not start</h1>" in answer_section(failed)
