"""The page of two recordings: the headline of the comparison, its figures, both runs at other limits, and no markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.analysis.comparison.difference_texts import difference_text, interval_text
from servetop.analysis.comparison.report_types import OtherCause
from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.reports.page.comparison_html import comparison_html
from servetop.reports.page.comparison_page import ComparisonPage, comparison_page
from servetop.reports.page.packed_columns import unpacked
from tests.judgement.brief_recordings import record_briefly

LOADS = (StageConfig(request_rate=10.0, duration=10.0), StageConfig(request_rate=20.0, duration=15.0))
SLOWER = {"c0": "0.004"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("recordings")
    record_briefly(folder / "main.servetop", *LOADS, goodput={"ttft": 0.02})
    record_briefly(folder / "slower.servetop", *LOADS, settings=SLOWER)
    return str(folder / "main.servetop"), str(folder / "slower.servetop")


@pytest.fixture(scope="module")
def found(pair: tuple[str, str]) -> tuple[ComparisonPage, str]:
    page = comparison_page(pair)
    return page, comparison_html(page)


def data_of(text: str) -> Any:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(data)


def test_the_heading_is_the_headline_of_the_comparison(found: tuple[ComparisonPage, str]) -> None:
    page, text = found
    first, *rest = page.comparison.headline.split("; ")
    assert first.startswith("B is worse: goodput −")
    assert f"<h1>{first}</h1>" in text
    assert all(f">{each[:1].upper()}{each[1:]}.</p>" in text for each in rest)


def test_every_difference_is_in_the_page_with_its_interval(found: tuple[ComparisonPage, str]) -> None:
    page, text = found
    assert len(page.comparison.stages) == 2
    for stage in page.comparison.stages:
        assert f"<summary>{stage.label}: intervals</summary>" in text
        for value in stage.metrics:
            assert f"<td>{difference_text(value)}</td><td>{interval_text(value)}</td>" in text
    assert "worse" in {each.verdict for stage in page.comparison.stages for each in stage.metrics}


def test_the_figures_of_both_are_side_by_side(found: tuple[ComparisonPage, str]) -> None:
    page, text = found
    requests = [f"{each.summary.requests.completed:,} / 0 / 0" for each in page.pages.values()]
    assert "".join(f"<td>{each}</td>" for each in requests) in text
    assert '<th scope="row">TTFT A</th>' in text
    assert '<th scope="row">TTFT B</th>' in text
    assert text.index("TTFT A<") < text.index("TTFT B<") < text.index("TPOT A<")


def test_both_runs_are_counted_at_the_objectives_of_the_one_that_has_any(found: tuple[ComparisonPage, str]) -> None:
    page, text = found
    data = data_of(text)
    assert data["objectives"] == {"ttft": 0.02}
    assert [each["name"] for each in data["runs"]] == ["A", "B"]
    rows = data["runs"][0]["rows"]
    within = (unpacked(rows["columns"]["ttft"]).astype(float) <= 0.02) & (unpacked(rows["served"]) == 1)
    summary = page.pages["A"].summary.requests
    assert int(within.sum()) / summary.duration == summary.request_goodput
    assert text.count('data-within-run="B"') == 2


def test_the_charts_have_a_line_for_each_run(found: tuple[ComparisonPage, str]) -> None:
    data = data_of(found[1])
    assert {"load", "tokens", "ttft", "tpot"} <= {each["name"] for each in data["charts"]}
    assert all([line["label"] for line in each["lines"]] == ["A", "B"] for each in data["charts"])
    assert all(line["column"] in data["time"]["columns"] for each in data["charts"] for line in each["lines"])
    assert [[line["label"] for line in each["lines"]] for each in data["distributions"]] == [["A", "B"]] * 4
    (load,) = data["load"]
    assert {each["label"] for each in load["series"]} >= {"A TTFT p99", "B TTFT p99"}
    assert np.unique([point[0] for each in load["series"] for point in each["points"]]).size == 4


def test_unlike_workloads_are_refused_unless_asked_for(pair: tuple[str, str], tmp_path: Path) -> None:
    record_briefly(tmp_path / "other.servetop", *LOADS, input_len=64)
    names = (pair[0], str(tmp_path / "other.servetop"))
    with pytest.raises(UsageError, match="different workloads"):
        comparison_page(names)
    text = comparison_html(comparison_page(names, anyway=True))
    assert "⚠ A and B have different workloads" in text


def test_what_a_stranger_wrote_into_a_recording_is_text(found: tuple[ComparisonPage, str]) -> None:
    attack = "</script><script>window.owned=1</script><img src=x>"
    page, comparison = found[0], found[0].comparison
    cause = OtherCause(kind="cache", text=attack, metrics=(), severity="warning", pairs=1, of_pairs=1)
    hostile = replace(comparison, headline=attack, warnings=(attack,), other_causes=(cause,), only_a=(attack,))
    report = replace(page.report, a=replace(page.report.a, name=attack), comparisons=(hostile,))
    text = comparison_html(replace(page, report=report))
    assert text.count("<script>") == 1
    assert "<img" not in text
    assert text.count("&lt;img src=x&gt;") >= 6
