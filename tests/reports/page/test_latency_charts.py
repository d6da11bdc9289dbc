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
from tests.analysis.sweep.sweep_grids import RATES, grid, judged


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


def test_a_sweep_has_a_line_for_each_batch_size_in_order_of_load(sample: ReportPage) -> None:
    cells = grid({32: "8 15.5 16", 64: "8 16 23.9"})
    charts: Any = load_charts({"": replace(sample.summary, sweep=judged(cells[::-1], objectives={}))})
    assert [each["title"] for each in charts] == [
        "TTFT p99 against load, requests/s",
        "TPOT p99 against load, requests/s",
    ]
    series = charts[0]["series"]
    assert [each["label"] for each in series] == ["batch 32", "batch 64"]
    assert [[point[0] for point in each["points"]] for each in series] == [list(RATES)] * 2
    assert {point[1] for point in series[0]["points"]} == {0.04}
    assert series[0]["dash"] != series[1]["dash"]


def test_the_lines_of_a_large_sweep_differ_without_colour(sample: ReportPage) -> None:
    cells = grid({2**power: "8 9" for power in range(8)})
    charts: Any = load_charts({"": replace(sample.summary, sweep=judged(cells, objectives={}))})
    looks = {(tuple(each["dash"]), each["filled"]) for each in charts[0]["series"]}
    assert len(looks) == len(charts[0]["series"]) == 8


def test_one_load_is_no_chart(sample: ReportPage) -> None:
    assert load_charts({"": replace(sample.summary, stages=sample.summary.stages[:1])}) == []


def test_distributions_are_one_chart_of_one_run_and_one_chart_for_each_latency_of_two(sample: ReportPage) -> None:
    one: Any = distribution_charts(sample)[0]
    assert [each["label"] for each in one["lines"]] == ["TTFT", "TPOT", "ITL", "E2EL"]
    two: Any = compared_distributions({"A": sample, "B": sample})
    assert [each["title"].split(":")[0] for each in two] == ["TTFT", "TPOT", "ITL", "E2EL"]
    assert two[0]["lines"][0]["column"] == one["lines"][0]["column"]
    for chart in (one, *two):
        assert len({tuple(line["dash"]) for line in chart["lines"]}) == len(chart["lines"])
