"""The thresholds of a watch: their grammar, and what breaks them for how long."""

from __future__ import annotations

import math

import numpy as np
import pytest

from servetop.analysis.fleet.watch_thresholds import ThresholdResult, judge, parse_watch_threshold
from servetop.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "metric", "sign", "limit"),
    [
        ("kv_usage<90%", "kv_usage", "<", 0.9),
        (" waiting <= 10 ", "waiting", "<=", 10.0),
        ("error_rate<1%", "error_rate", "<", 0.01),
        ("preemptions/s<0.5", "preemptions/s", "<", 0.5),
        ("ttft_p90<500ms", "ttft_p90", "<", 0.5),
        ("queue_p50<=1.5s", "queue_p50", "<=", 1.5),
        ("e2el_p95<20s", "e2el_p95", "<", 20.0),
        ("p99_ttft<500ms", "ttft_p99", "<", 0.5),
        ("p99_ttft_ms<=500", "ttft_p99", "<=", 0.5),
        ("output_tokens/s>=100", "output_tokens/s", ">=", 100.0),
    ],
)
def test_a_condition_is_a_metric_and_a_limit_with_its_unit(text: str, metric: str, sign: str, limit: float) -> None:
    found = parse_watch_threshold(text)
    assert (found.metric, found.sign) == (metric, sign)
    assert found.limit == pytest.approx(limit)
    assert str(found.text) == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kv_usage", "is not a threshold of a watch: use METRIC<LIMIT"),
        ("kv_usage<90", "the limit of kv_usage is a percentage, as in 90%"),
        ("error_rate<0.01", "the limit of error_rate is a percentage, as in 90%"),
        ("waiting<5ms", "the limit of waiting is a number without a unit"),
        ("ttft_p90<0.5", "the limit of ttft_p90 is ms or s, as in 500ms"),
        ("ttft_p90<1.2.3s", "'1.2.3' is not a number"),
        ("ttft_p42<500ms", "a watch has no metric 'ttft_p42': use ttft_p9"),
        ("p42_ttft_ms<=500", "a watch has no metric 'p42_ttft_ms'"),
        ("p99_ttft<500", "the limit of ttft_p99 is ms or s, as in 500ms"),
        ("p99_ttft_ms<5%", "the limit of ttft_p99 is ms or s, as in 500ms"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_watch_threshold(text)
    assert message in str(caught.value)


def judged(values: list[float], text: str = "waiting<=10", *, hold: float = 10.0) -> ThresholdResult:
    return judge(parse_watch_threshold(text), np.array(values), step=1.0, hold=hold, server="gpu7")


def test_only_what_lasts_breaks_a_threshold() -> None:
    assert judged([0.0] * 20 + [11.0] * 9 + [0.0] * 20) == ThresholdResult()
    assert judged([0.0] * 20 + [11.0] * 9 + [10.0] + [11.0] * 9) == ThresholdResult(), "a limit that is allowed is kept"
    found = judged([0.0] * 20 + [11.0] * 10 + [0.0] * 20)
    assert found == ThresholdResult(broken="gpu7: waiting<=10 was broken from 0:20 for 0:10")


def test_the_longest_time_is_said_and_the_first_one() -> None:
    found = judged([11.0] * 10 + [0.0] * 10 + [11.0] * 30)
    assert found.broken == "gpu7: waiting<=10 was broken from 0:20 to the end, first at 0:00"


def test_what_was_not_measured_neither_keeps_nor_breaks_it() -> None:
    unknown = [math.nan] * 30
    assert judged(unknown).undecided == "gpu7: waiting<=10: waiting was not measured"
    assert judged([11.0] * 6 + unknown + [11.0] * 3).undecided.endswith(
        "measured for 9 s only, of at least 10 s (--for)"
    )
    assert judged([11.0] * 8 + unknown + [0.0] * 20) == ThresholdResult()
    assert judged([]).undecided != ""


@pytest.mark.parametrize(("sign", "broken"), [("<", [1, 1, 0]), ("<=", [1, 0, 0]), (">", [0, 1, 1]), (">=", [0, 0, 1])])
def test_each_sign_means_what_it_says(sign: str, broken: list[int]) -> None:
    values = np.array([0.91, 0.9, 0.89, math.nan])
    found = parse_watch_threshold(f"kv_usage{sign}90%").is_broken(values)
    assert found.tolist() == [*map(bool, broken), False]
