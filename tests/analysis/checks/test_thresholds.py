"""Thresholds: conditions on a summary."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from servetop.analysis.checks.thresholds import parse_threshold, percentile_of, percentiles_needed
from servetop.core.errors import UsageError

SUMMARY = {"p99_ttft_ms": 640.0, "completed": 100, "request_goodput": None, "server": {"preemptions": 3.0}}


def failures(numbers: Mapping[str, Any], thresholds: Sequence[str]) -> list[str]:
    found = [parse_threshold(text).failure(numbers) for text in thresholds]
    return [line for line in found if line is not None]


@pytest.mark.parametrize(
    ("threshold", "broken"),
    [
        ("p99_ttft_ms<=500", ["p99_ttft_ms<=500: it is 640"]),
        ("p99_ttft_ms <= 700", []),
        ("completed>=100", []),
        ("completed==99", ["completed==99: it is 100"]),
        ("completed > 1e2", ["completed>100: it is 100"]),
        ("server.preemptions<=0", ["server.preemptions<=0: it is 3"]),
        ("request_goodput>=1", ["request_goodput>=1: not measured"]),
        ("server.max_waiting<=5", ["server.max_waiting<=5: not measured"]),
    ],
)
def test_a_condition_is_met_or_reports_the_number(threshold: str, broken: list[str]) -> None:
    assert failures(SUMMARY, [threshold]) == broken


STAGES = {
    "stages": [
        {"stage": 1, "p99_ttft_ms": 300.0, "steady": {"p99_ttft_ms": 200.0}, "server": {"preemptions": 0}},
        {"stage": 2, "p99_ttft_ms": 640.0, "steady": {"p99_ttft_ms": None}, "server": {"preemptions": 4}},
    ]
}


@pytest.mark.parametrize(
    ("threshold", "unmet"),
    [
        ("stages[1].p99_ttft_ms<500", None),
        ("stages[2].p99_ttft_ms<500", "it is 640"),
        ("stages[1].steady.p99_ttft_ms<500", None),
        ("stages[2].steady.p99_ttft_ms<500", "not measured"),
        ("stages[0].p99_ttft_ms<500", "not measured"),
        ("stages[*].p99_ttft_ms<700", None),
        ("stages[*].p99_ttft_ms<100", "stage 1: it is 300, stage 2: it is 640"),
        ("stages[*].server.preemptions<=0", "stage 2: it is 4"),
    ],
)
def test_a_condition_may_be_that_of_one_stage_or_of_all(threshold: str, unmet: str | None) -> None:
    assert failures(STAGES, [threshold]) == ([] if unmet is None else [f"{threshold}: {unmet}"])


def test_a_condition_on_all_stages_is_not_met_by_a_run_without_stages() -> None:
    assert failures({"stages": []}, ["stages[*].completed>=1"]) == ["stages[*].completed>=1: there are no stages"]


def test_a_percentile_of_a_stage_is_computed() -> None:
    assert percentiles_needed(
        [parse_threshold(each) for each in ["stages[2].steady.p99.9_ttft_ms<5", "stages[*].p75_itl_ms<9"]]
    ) == [99.9, 75]


def test_every_unmet_condition_is_reported() -> None:
    assert len(failures(SUMMARY, ["p99_ttft_ms<=500", "completed>=1", "server.preemptions<1"])) == 2


def test_a_condition_may_name_any_percentile() -> None:
    assert percentiles_needed(
        [parse_threshold(each) for each in ["p99.9_ttft_ms<=5", "completed>=1", "steady.p75_itl_ms<=9"]]
    ) == [99.9, 75]
    assert failures({"p99.9_ttft_ms": 6.0}, ["p99.9_ttft_ms<=5"]) == ["p99.9_ttft_ms<=5: it is 6"]
    assert failures({"steady": {"p99.9_itl_ms": 6.0}}, ["steady.p99.9_itl_ms<=9"]) == []
    assert percentile_of("p101_ttft_ms") is None


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        ("p99_ttft_ms", "'p99_ttft_ms' is not a threshold: use KEY<=NUMBER"),
        ("p99_ttft<=500", "unknown summary key 'p99_ttft': valid keys are p99_ttft_ms"),
        ("preemptions<=0", "valid keys are server.preemptions"),
        ("completed>=many", "'many' is not a number"),
        ("completed>=nan", "'nan' is not a number"),
        ("", "is not a threshold"),
        ("stages[2].preemption<=0", "unknown summary key 'preemption': valid keys are"),
        ("stages[-1].completed>=1", "is not a threshold"),
        ("stages[x].completed>=1", "unknown summary key"),
        ("<=5", "is not a threshold"),
    ],
)
def test_a_malformed_condition_is_a_usage_error(threshold: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_threshold(threshold)
