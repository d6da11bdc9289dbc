"""Why a comparison cannot tell, from hand-made runs and differences."""

from __future__ import annotations

import dataclasses
import math

import pytest

from servetop.analysis.comparison.comparison import compare
from servetop.analysis.comparison.difference import Basis
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import ComparedStage
from servetop.analysis.comparison.undecided import UndecidedReason, undecided_reason
from servetop.analysis.comparison.verdicts import Verdict
from tests.analysis.comparison.samples import run, stage
from tests.analysis.comparison.test_verdicts import found


def reason(value: float, error: float, *, basis: Basis = Basis.BLOCKS, **flags: bool) -> UndecidedReason:
    stages = {"too_short": False, "unsteady": False} | flags
    return undecided_reason(found(value, error, basis=basis), margin=0.02, **stages)


def test_a_short_or_unsteady_stage_is_the_reason_before_any_other() -> None:
    assert reason(-0.97, 0.5, too_short=True, unsteady=True) is UndecidedReason.TOO_SHORT
    assert reason(-0.97, 0.5, unsteady=True) is UndecidedReason.NOT_STEADY
    assert reason(0.0, math.inf, too_short=True) is UndecidedReason.TOO_SHORT


def test_the_length_of_a_stage_does_not_bear_on_the_spread_between_starts() -> None:
    assert reason(0.0, 0.05, basis=Basis.STARTS, too_short=True, unsteady=True) is UndecidedReason.WIDE_INTERVAL


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (-0.030, 0.005, UndecidedReason.MANY_METRICS),
        (-0.012, 0.005, UndecidedReason.NEAR_MARGIN),
        (+0.012, 0.005, UndecidedReason.NEAR_MARGIN),
        (-0.012, 0.010, UndecidedReason.WIDE_INTERVAL),
        (-0.500, math.inf, UndecidedReason.TOO_FEW_VALUES),
    ],
)
def test_an_interval_that_excludes_0_has_another_reason_than_its_width(
    value: float, error: float, expected: UndecidedReason
) -> None:
    assert reason(value, error) is expected
    low, high = found(value, error).interval
    assert (low > 0 or high < 0) == (expected in (UndecidedReason.MANY_METRICS, UndecidedReason.NEAR_MARGIN))


def undecided(stages: tuple[ComparedStage, ...]) -> list[MeasuredDifference]:
    return [each for stage in stages for each in stage.metrics if each.verdict is Verdict.CANNOT_TELL]


def test_every_metric_without_a_verdict_has_a_reason_and_no_other_has() -> None:
    a, b = (run(name, stage(seconds=100.0, seed=seed)) for name, seed in (("a", 1), ("b", 2)))
    stages = compare([a], [b]).stages
    assert undecided(stages)
    for each in stages[0].metrics:
        assert (each.reason is None) == (each.verdict is not Verdict.CANNOT_TELL)


def test_ten_seconds_are_too_short_and_a_hundred_are_not() -> None:
    lengths = (10.0, 100.0)
    stages = {
        seconds: compare([run("a", stage(seconds=seconds))], [run("b", stage(seconds=seconds, seed=2))]).stages
        for seconds in lengths
    }
    assert [stages[each][0].needed_seconds for each in lengths] == [40.0, None]
    assert {each.reason for each in undecided(stages[10.0])} == {UndecidedReason.TOO_SHORT}
    assert UndecidedReason.TOO_SHORT not in {each.reason for each in undecided(stages[100.0])}


def test_a_clear_difference_of_a_short_stage_keeps_its_verdict() -> None:
    a, b = run("a", stage(rate=40.0, seconds=20.0)), run("b", stage(rate=40.0, seconds=20.0, noise=5, ttft=0.4))
    (found_stage,) = compare([a], [b]).stages
    mean = found_stage.metric("mean_ttft_ms")
    assert mean is not None
    assert found_stage.needed_seconds == 40.0
    assert (mean.verdict, mean.reason) == (Verdict.WORSE, None)


def test_several_short_starts_are_judged_by_their_spread() -> None:
    a, b = ([run(f"{arm}{seed}", stage(seconds=10.0, seed=seed)) for seed in (1, 2, 3)] for arm in "ab")
    (found_stage,) = compare(a, b).stages
    assert found_stage.needed_seconds is None


def test_a_long_stage_that_is_not_steady_says_so() -> None:
    drifting = [
        dataclasses.replace(stage(seed=seed), steady=False, reason="in flight grows by 2 requests/s") for seed in (1, 2)
    ]
    stages = compare([run("a", drifting[0])], [run("b", drifting[1])]).stages
    assert {each.reason for each in undecided(stages)} == {UndecidedReason.NOT_STEADY}
