"""The limits of `--max-regression`."""

from __future__ import annotations

import math

import pytest

from servetop.analysis.comparison.compared_metrics import Scale
from servetop.core.errors import UsageError
from servetop.reports.check.regression_limit import parse_regression_limit
from tests.reports.check.gates_for_tests import differing


@pytest.mark.parametrize(
    ("text", "key", "stage", "amount", "relative"),
    [
        ("output_throughput=2%", "output_throughput", None, 0.02, True),
        ("p99_ttft_ms=50ms", "p99_ttft_ms", None, 50.0, False),
        ("p99_ttft_ms = 0.05 s", "p99_ttft_ms", None, 50.0, False),
        ("request_throughput=.5req/s", "request_throughput", None, 0.5, False),
        ("mean_kv_usage=0.05", "mean_kv_usage", None, 0.05, False),
        ("median_e2el_ms=5%", "p50_e2el_ms", None, 0.05, True),
        ("stages[2].p99_ttft_ms=10%", "p99_ttft_ms", 2, 0.10, True),
        ("stages[2].steady.p99_ttft_ms=10%", "p99_ttft_ms", 2, 0.10, True),
        ("stages[*].p99_ttft_ms=10%", "p99_ttft_ms", None, 0.10, True),
    ],
)
def test_a_limit_has_a_metric_a_stage_and_an_amount(
    text: str, key: str, stage: int | None, amount: float, relative: bool
) -> None:
    limit = parse_regression_limit(text)
    assert (limit.metric.key, limit.stage, limit.relative) == (key, stage, relative)
    assert limit.amount == pytest.approx(amount)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p99_ttft_ms", "use METRIC=LIMIT"),
        ("p99_ttft_ms<=10%", "use METRIC=LIMIT"),
        ("p99_ttft_ms=-10%", "use METRIC=LIMIT"),
        ("max_output_tokens_per_s=2%", "cannot be tested: .*output_throughput, request_throughput"),
        ("p99_ttft=2%", "did you mean p99_ttft_ms"),
        ("p99_ttft_ms=10", "use p99_ttft_ms=2% or p99_ttft_ms=5ms"),
        ("output_throughput=10ms", "use output_throughput=2% or output_throughput=5tok/s"),
        ("output_throughput=100%", "no loss is larger than 100 %"),
    ],
)
def test_an_unclear_limit_is_a_usage_error(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_regression_limit(text)


def test_a_limit_is_converted_to_the_scale_of_the_difference() -> None:
    relative, absolute = differing(0.1, 0.01, a=200.0), differing(20.0, 1.0, a=200.0, scale=Scale.ABSOLUTE)
    percent, amount = parse_regression_limit("p99_ttft_ms=10%"), parse_regression_limit("p99_ttft_ms=50ms")
    scaled = [limit.on_scale_of(each) for limit in (percent, amount) for each in (relative, absolute)]
    assert scaled == pytest.approx([0.10, 20.0, 0.25, 50.0])
    assert math.isclose(percent.on_scale_of(differing(1.0, 1.0, a=0.0, scale=Scale.ABSOLUTE)), 0.0)


def test_a_limit_is_written_as_it_is_read() -> None:
    assert str(parse_regression_limit("stages[2].p99_ttft_ms=10%")) == "stages[2].p99_ttft_ms=10%"
    assert str(parse_regression_limit("p99_ttft_ms=0.05s")) == "p99_ttft_ms=50ms"
