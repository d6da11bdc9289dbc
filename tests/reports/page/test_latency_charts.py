"""Latency against throughput has a point for each stage, and distributions have a line for each run."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from servetop.core.units import MS_PER_S
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.latency_charts import compared_distributions, distribution_charts, load_charts
from servetop.reports.page.report_page import ReportPage, report_page


@pytest.fixture(scope="module")
def sample() -> ReportPage:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        return report_page(reader, name="sample")


def test_each_stage_is_a_point_at_its_throughput(sample: ReportPage) -> None:
    found: Any = load_charts({"": sample.summary})[0]
    assert [each["label"] for each in found["series"]] == ["TTFT p99", "TTFT p50", "TPOT p99"]
    stages = [each for each in sample.summary.stages if each.measured.requests.latency("ttft", "p99")]
    expected = [
        (each.measured.requests.request_throughput, each.measured.requests.latency("ttft", "p99") or 0.0, each.label)
        for each in stages
    ]
    assert found["series"][0]["points"] == [(x, y / MS_PER_S, label) for x, y, label in expected]


def test_two_runs_have_series_of_their_own(sample: ReportPage) -> None:
    found: Any = load_charts({"A": sample.summary, "B": sample.summary})[0]
    labels = [each["label"] for each in found["series"]]
    assert labels == ["A TTFT p99", "B TTFT p99", "A TPOT p99", "B TPOT p99"]
    assert [each["filled"] for each in found["series"]] == [True, False, True, False]


def test_one_load_is_no_chart(sample: ReportPage) -> None:
    assert load_charts({"": replace(sample.summary, stages=sample.summary.stages[:1])}) == []


def test_distributions_are_one_chart_of_one_run_and_one_chart_for_each_latency_of_two(sample: ReportPage) -> None:
    one: Any = distribution_charts(sample)[0]
    assert [each["label"] for each in one["lines"]] == ["TTFT", "TPOT", "ITL", "E2EL"]
    two: Any = compared_distributions({"A": sample, "B": sample})
    assert [each["title"].split(":")[0] for each in two] == ["TTFT", "TPOT", "ITL", "E2EL"]
    assert two[0]["lines"][0]["column"] == one["lines"][0]["column"]
    assert [line["dashed"] for line in two[0]["lines"]] == [False, True]
