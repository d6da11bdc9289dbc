"""Conditions on a summary."""

import pytest

from servetop.core.errors import UsageError
from servetop.recordings.summary.thresholds import check_thresholds, parse_threshold, percentile_of, percentiles_needed

SUMMARY = {"p99_ttft_ms": 640.0, "completed": 100, "request_goodput": None, "server": {"preemptions": 3.0}}


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
def test_a_condition_holds_or_says_what_the_number_is(threshold: str, broken: list[str]) -> None:
    assert check_thresholds(SUMMARY, [threshold]) == broken


def test_all_unmet_conditions_are_told() -> None:
    assert len(check_thresholds(SUMMARY, ["p99_ttft_ms<=500", "completed>=1", "server.preemptions<1"])) == 2


def test_any_percentile_can_be_asked_for() -> None:
    assert percentiles_needed(["p99.9_ttft_ms<=5", "completed>=1", "steady.p75_itl_ms<=9"]) == [99.9, 75]
    assert check_thresholds({"p99.9_ttft_ms": 6.0}, ["p99.9_ttft_ms<=5"]) == ["p99.9_ttft_ms<=5: it is 6"]
    assert check_thresholds({"steady": {"p99.9_itl_ms": 6.0}}, ["steady.p99.9_itl_ms<=9"]) == []
    assert percentile_of("p101_ttft_ms") is None


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        ("p99_ttft_ms", "'p99_ttft_ms' is no threshold: give KEY<=NUMBER"),
        ("p99_ttft<=500", "the summary has no 'p99_ttft': valid keys are p99_ttft_ms"),
        ("preemptions<=0", "valid keys are server.preemptions"),
        ("completed>=many", "'many' is no number"),
        ("completed>=nan", "'nan' is no number"),
        ("", "is no threshold"),
        ("<=5", "is no threshold"),
    ],
)
def test_a_malformed_condition_is_the_users_mistake(threshold: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_threshold(threshold)
