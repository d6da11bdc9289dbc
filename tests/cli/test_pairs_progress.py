"""The progress line of a series: pairs so far and expected, the first open metric, the time left."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.compared_metrics import Scale, metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions
from servetop.analysis.comparison.difference import Basis, Difference
from servetop.analysis.comparison.difference_texts import (
    difference_text,
    duration_text,
    interval_text,
    margin_text,
)
from servetop.analysis.comparison.paired_runs import PairedMetric, paired_difference
from servetop.analysis.comparison.sequential import DifferenceLimits, evidence
from servetop.analysis.comparison.verdicts import Verdict
from servetop.cli.pairs.pairs_progress import progress_line
from servetop.cli.pairs.pairs_report import end_reason, print_series
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode
from servetop.run.pairs.pair_series import SeriesEnd, SeriesPlan, SeriesResult, SeriesState
from servetop.run.pairs.series_folder import ArmConfigs
from tests.reports.schema.comparison_errors import comparison_errors


def paired(*differences: float, key: str = "output_throughput", scale: Scale = Scale.RELATIVE) -> PairedMetric:
    metric = metric_named(key)
    assert metric is not None
    mean = sum(differences) / len(differences)
    found = Difference(
        a=100.0,
        b=98.0,
        value=math.expm1(mean) if scale is Scale.RELATIVE else mean,
        low_error=0.01,
        high_error=0.01,
        df=1,
        basis=Basis.PAIRED_STARTS,
        scale=scale,
    )
    return PairedMetric(
        metric=metric,
        load=StageLoad(request_rate=8.0),
        difference=found,
        margin=metric.margin,
        differences=differences,
        evidence=evidence(differences, DifferenceLimits.of(metric.margin, scale)),
        within=0.0,
    )


OPEN = dataclasses.replace(paired(-0.02, -0.022, -0.024), expected=6, needed=8)
ANSWERED = dataclasses.replace(paired(0.0, 0.0, key="p50_ttft_ms"), verdict=Verdict.NO_DIFFERENCE)


def state(*metrics: PairedMetric, pairs: int = 3) -> SeriesState:
    return SeriesState(pairs=pairs, seconds=180.0, pair_seconds=60.0, metrics=metrics)


def test_the_line_has_pairs_the_open_metric_and_the_time_left() -> None:
    assert progress_line(state(ANSWERED, OPEN), budget=1000.0) == (
        "pair 3 of about 6 · output tokens −2.2 % [−3.6, −0.73] · 1 of 2 answered · 3 min left"
    )


def test_the_budget_limits_the_time_left() -> None:
    assert progress_line(state(OPEN), budget=240.0).endswith(" · 60 s left")
    unknown = dataclasses.replace(OPEN, expected=None)
    assert progress_line(state(unknown), budget=280.0).startswith("pair 3 · output tokens")


def test_an_answered_series_is_done_and_early_intervals_are_not_shown() -> None:
    assert progress_line(state(ANSWERED, pairs=2), budget=1000.0) == "pair 2 · TTFT p50 0 % · done"


def test_texts_have_the_unit_of_the_difference() -> None:
    points = paired_difference(paired(0.01, 0.01, 0.01, key="mean_kv_usage", scale=Scale.ABSOLUTE))
    assert (difference_text(points), interval_text(points)) == ("+1.0 pt", "[+1.0, +1.0]")
    assert margin_text(paired_difference(OPEN)) == "2 %"
    assert paired_difference(OPEN).more_pairs == 5
    for differences, text in (
        ((0.1,), "unknown"),
        ((-0.3, 0.4, 0.1), "unknown"),  # -100 % to more than +10,000 %
        ((-2.9, -2.8, -2.7), "[−97, −87]"),  # narrow, and far from 0
        ((5.0, 5.0, 5.0), "[+15k, +15k]"),
    ):
        assert interval_text(paired_difference(paired(*differences))) == text
    assert (duration_text(119.2), duration_text(121)) == ("120 s", "3 min")


def test_the_reason_of_an_open_series_is_its_limit_and_the_cost() -> None:
    plan = SeriesPlan(
        configs=ArmConfigs(a=RunConfig(), b=RunConfig()),
        options=ComparisonOptions(metrics=()),
        seed=0,
        budget=240.0,
        pairs=3,
    )
    result = SeriesResult(state=state(OPEN), end=SeriesEnd.BUDGET, exit_code=ExitCode.CANNOT_TELL)
    assert end_reason(result, plan, folder=Path()) == (
        "cannot tell output tokens within the budget of 4 min: "
        "about 5 more pairs (5 min) would tell, with --resume and a larger --budget"
    )
    hours = dataclasses.replace(result, state=dataclasses.replace(result.state, pair_seconds=7200.0))
    assert "about 5 more pairs (more than 4 h) would tell" in end_reason(hours, plan, folder=Path())
    all_pairs = dataclasses.replace(result, end=SeriesEnd.PAIRS)
    assert "within 3 pairs: about 5 more" in end_reason(all_pairs, plan, folder=Path())
    unknown = dataclasses.replace(result, state=state(dataclasses.replace(OPEN, needed=None)))
    assert end_reason(unknown, plan, folder=Path()).endswith("too much to say how many would tell")


def test_a_metric_without_values_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    tpot = paired(0.0, key="mean_tpot_ms").metric
    plan = SeriesPlan(
        configs=ArmConfigs(a=RunConfig(), b=RunConfig()),
        options=ComparisonOptions(metrics=(ANSWERED.metric, tpot)),
        seed=0,
        budget=240.0,
    )
    result = SeriesResult(state=state(ANSWERED), end=SeriesEnd.ANSWERED, exit_code=ExitCode.OK)
    print_series(result, plan, folder=Path("series"), as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["A  sim · llama-2-7b", "B  sim · llama-2-7b"]
    assert "no difference seen" in lines[6]
    assert lines[-4:] == ["", "not measured: mean_tpot_ms", "", "3 pairs in 3 min of 4 min · recordings in series"]


def test_the_json_has_the_schema_and_names_what_would_tell(capsys: pytest.CaptureFixture[str]) -> None:
    plan = SeriesPlan(
        configs=ArmConfigs(a=RunConfig(), b=RunConfig()),
        options=ComparisonOptions(metrics=(OPEN.metric,)),
        seed=0,
        budget=240.0,
    )
    result = SeriesResult(state=state(OPEN), end=SeriesEnd.BUDGET, exit_code=ExitCode.CANNOT_TELL)
    print_series(result, plan, folder=Path("series"), as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert comparison_errors(found, "pairs") == []
    (one,) = found["metrics"]
    assert (one["measured"]["key"], one["measured"]["more_pairs"], one["pairs_needed"]) == ("output_throughput", 5, 8)
    assert one["measured"]["low"] < one["measured"]["difference"] < one["measured"]["high"]
