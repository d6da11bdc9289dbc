"""Verdicts on differences: what they claim, what they leave open, and what an answer costs."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.comparison.compared_metrics import ComparedMetric, Scale, metric_named
from servetop.analysis.comparison.difference import Basis, Difference
from servetop.analysis.comparison.verdicts import (
    Cost,
    Verdict,
    alarm_probability,
    cost_of_answer,
    holm,
    judge,
    margin_of,
)


def metric(key: str = "output_throughput") -> ComparedMetric:
    found = metric_named(key)
    assert found is not None
    return found


def found(value: float, error: float, *, a: float = 1000.0, basis: Basis = Basis.BLOCKS, starts: int = 1,
          within: float | None = None, between: float = 0.0, df: float = 30.0) -> Difference:  # fmt: skip
    return Difference(
        a=a,
        b=a * (1 + value),
        value=value,
        low_error=error,
        high_error=error,
        df=df,
        basis=basis,
        scale=Scale.RELATIVE,
        within_variance=error**2 if within is None else within,
        start_variance=between,
        starts=starts,
    )


def verdict(key: str, value: float, error: float) -> Verdict:
    each = found(value, error)
    margin = margin_of(metric(key), each)
    return judge(
        each,
        margin=margin,
        adjusted=alarm_probability(each, margin),
        higher_is_better=metric(key).higher_is_better,
    )


def test_a_clear_loss_of_throughput_is_worse_and_a_clear_loss_of_latency_better() -> None:
    assert verdict("output_throughput", -0.03, 0.004) is Verdict.WORSE
    assert verdict("output_throughput", 0.03, 0.004) is Verdict.BETTER
    assert verdict("mean_ttft_ms", -0.03, 0.004) is Verdict.BETTER
    assert verdict("mean_ttft_ms", 0.03, 0.004) is Verdict.WORSE


def test_a_difference_below_half_the_margin_is_never_worse_however_certain() -> None:
    assert verdict("output_throughput", -0.009, 1e-6) is Verdict.NO_DIFFERENCE


def test_an_interval_beyond_the_margin_cannot_tell() -> None:
    assert verdict("output_throughput", -0.012, 0.006) is Verdict.CANNOT_TELL
    assert verdict("output_throughput", 0.0, math.inf) is Verdict.CANNOT_TELL


def test_the_tail_has_a_wider_margin_and_short_latencies_a_floor() -> None:
    assert margin_of(metric("p99_ttft_ms"), found(0.0, 0.0)) == 0.10
    assert margin_of(metric("mean_ttft_ms"), found(0.0, 0.0, a=10.0)) == pytest.approx(0.05)
    assert margin_of(metric("mean_ttft_ms"), found(0.0, 0.0), margin=0.01) == 0.01


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_never_lowers_a_probability_and_keeps_their_order(probabilities: list[float]) -> None:
    adjusted = holm(probabilities)
    assert all(after >= before for before, after in zip(probabilities, adjusted, strict=True))
    ranked = sorted(zip(probabilities, adjusted, strict=True))
    assert [after for _, after in ranked] == sorted(after for _, after in ranked)


def test_holm_of_four_tests() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_longer_runs_tell_what_varies_within_them() -> None:
    cost = cost_of_answer(found(0.0, 0.01, df=math.inf), margin=0.02, seconds=60.0, tests=1)
    half = math.log(1.02) / 2
    assert cost is not None
    assert cost.starts == 0
    assert cost.seconds == pytest.approx(60 * ((0.01 * (1.95996 + 1.64485) / half) ** 2 - 1), rel=1e-3)


def test_only_more_starts_tell_what_varies_between_them() -> None:
    several = found(0.0, 0.01, basis=Basis.STARTS, starts=3, within=0.0, between=1e-4, df=4)
    cost = cost_of_answer(several, margin=0.02, seconds=60.0, tests=1)
    half = math.log(1.02) / 2
    assert cost is not None
    assert cost.starts == math.ceil(3e-4 * ((2.7764 + 2.1318) / half) ** 2) - 3


def test_more_metrics_cost_more_and_unknown_errors_nothing_that_can_be_named() -> None:
    one, ten = (cost_of_answer(found(0.0, 0.01), margin=0.02, seconds=60.0, tests=each) for each in (1, 10))
    assert one is not None
    assert ten is not None
    assert ten.seconds > one.seconds
    assert cost_of_answer(found(0.0, math.inf), margin=0.02, seconds=60.0, tests=1) is None


def test_a_percentile_of_too_few_values_costs_what_bounds_its_error() -> None:
    short = dataclasses.replace(found(0.0, math.inf), shortage=3.0)
    cost = cost_of_answer(short, margin=0.10, seconds=60.0, tests=1)
    assert cost == Cost(seconds=120.0)


def test_a_cost_that_nobody_plans_is_beyond_reach() -> None:
    costs = [Cost(seconds=4 * 3600.0), Cost(seconds=4 * 3600.0 + 1), Cost(starts=100), Cost(starts=101)]
    assert [each.more_than for each in costs] == ["", "4 h", "", "100 starts"]
