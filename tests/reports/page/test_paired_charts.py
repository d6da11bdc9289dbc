"""Both runs are on one axis from the beginning of their load; the shorter one is unknown after its end."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import numpy as np
import pytest

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.paired_charts import paired_charts, paired_columns
from servetop.reports.page.report_page import ReportPage, report_page
from servetop.reports.page.time_columns import TimeColumns


@pytest.fixture(scope="module")
def sample() -> ReportPage:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        return report_page(reader, name="sample")


def with_time(page: ReportPage, *, since: float, seconds: float, done: list[float]) -> ReportPage:
    """The page of a run that completes `done` requests/s in bins of `seconds`, its load beginning at `since`."""
    at = since + (np.arange(len(done), dtype=np.float64) + 0.5) * seconds
    time = TimeColumns(seconds=seconds, columns={"at": at, "done": np.array(done)})
    record = replace(page.record, stages=[replace(page.record.loads[0], at=since)])
    assert record.load_since == since
    return replace(page, time=time, record=record)


def test_the_runs_begin_together_and_the_shorter_one_ends(sample: ReportPage) -> None:
    early = with_time(sample, since=2.0, seconds=1.0, done=[1.0, 2.0, 3.0])
    late = with_time(sample, since=50.0, seconds=1.0, done=[4.0, 5.0])
    found = paired_columns({"A": early, "B": late})
    assert found.columns["at"].tolist() == [0.5, 1.5, 2.5]
    assert found.columns["A_done"].tolist() == [1.0, 2.0, 3.0]
    assert found.columns["B_done"].tolist()[:2] == [4.0, 5.0]
    assert math.isnan(found.columns["B_done"][2])


def test_shorter_bins_are_averaged_into_those_of_the_longer_run(sample: ReportPage) -> None:
    fine = with_time(sample, since=0.0, seconds=1.0, done=[1.0, 3.0, 5.0, math.nan])
    coarse = with_time(sample, since=0.0, seconds=2.0, done=[7.0, 8.0])
    found = paired_columns({"A": fine, "B": coarse})
    assert found.seconds == 2.0
    assert found.columns["A_done"].tolist() == [2.0, 5.0]
    assert found.columns["B_done"].tolist() == [7.0, 8.0]


def test_a_chart_has_a_line_for_each_run_that_knows_it(sample: ReportPage) -> None:
    short = with_time(sample, since=0.0, seconds=1.0, done=[1.0])
    charts = {each.title: [line.label for line in each.lines] for each in paired_charts({"A": short, "B": sample})}
    assert charts["Completed requests per second"] == ["A", "B"]
    assert charts["KV cache used"] == ["B"]
    assert "GPU power" not in charts
