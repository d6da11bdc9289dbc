"""Pairs of runs become one difference per metric and load, with a verdict and what it takes to reach one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.compared_metrics import ComparedMetric, Scale, metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions
from servetop.analysis.comparison.paired_runs import PairedMetric, compare_pairs
from servetop.analysis.comparison.stage_sample import StageSample
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.comparison.verdicts import Verdict

REQUESTS = 64


def metric(key: str) -> ComparedMetric:
    found = metric_named(key)
    assert found is not None
    return found


TTFT, TPOT = metric("mean_ttft_ms"), metric("mean_tpot_ms")


def run(name: str, *stages: StageSample, start_spread: float = 0.0) -> ArmRun:
    return ArmRun(name=name, stages=stages, start_spread=StartSpread.everywhere(start_spread))


def stage(ttft: float, *, seed: int = 1, rate: float = 1.0, wave: float = 0.0) -> StageSample:
    """Requests once a second with this TTFT in seconds, of which every other one is `wave` longer."""
    due = np.arange(REQUESTS, dtype=np.float64)
    return StageSample(
        load=StageLoad(request_rate=rate),
        seed=seed,
        start=0.0,
        until=float(REQUESTS),
        steady=True,
        number=np.arange(REQUESTS),
        due=due,
        sent=due,
        done_at=due + ttft,
        ok=np.ones(REQUESTS, dtype=bool),
        latencies={
            "ttft": ttft + wave * (due % 3),
            "tpot": np.full(REQUESTS, math.nan),
            "e2el": np.full(REQUESTS, ttft),
        },
        prompt_tokens=np.full(REQUESTS, 8.0),
        output_tokens=np.full(REQUESTS, 8.0),
    )


def compared(a: Sequence[float], b: Sequence[float], *metrics: ComparedMetric) -> tuple[PairedMetric, ...]:
    """Compare runs with these TTFTs."""
    in_a = [run(f"a{at}", stage(ttft, seed=at)) for at, ttft in enumerate(a)]
    in_b = [run(f"b{at}", stage(ttft, seed=at)) for at, ttft in enumerate(b)]
    return compare_pairs(in_a, in_b, ComparisonOptions(metrics=metrics or (TTFT,)))


def test_each_pair_is_one_relative_difference() -> None:
    (found,) = compared([1.0, 2.0, 1.5], [1.1, 2.21, 1.65])
    assert found.differences == pytest.approx([math.log(1.1), math.log(1.105), math.log(1.1)])
    assert found.difference.value == pytest.approx((1.1 * 1.105 * 1.1) ** (1 / 3) - 1)
    assert found.difference.a == pytest.approx(1000 * 3.0 ** (1 / 3))
    assert found.margin == TTFT.margin
    assert found.verdict is Verdict.WORSE  # the spread between the pairs is what counts, not that between levels
    assert found.expected is None


def test_too_few_pairs_say_how_many_it_takes() -> None:
    (found,) = compared([1.0, 1.0, 1.0], [1.0, 1.03, 0.98])
    assert found.verdict is Verdict.CANNOT_TELL
    assert found.expected is not None
    assert found.needed is not None
    assert 4 <= found.expected <= found.needed
    low, high = found.interval
    assert low < 0 < high


def test_one_pair_is_judged_by_the_variation_within_it_and_between_starts() -> None:
    a, b = (run(name, stage(1.0, wave=0.01), start_spread=0.01) for name in "ab")
    (found,) = compare_pairs([a], [b], ComparisonOptions(metrics=[TTFT]))
    assert found.spread == pytest.approx(math.sqrt(2) * 0.01)
    assert found.interval == (-1.0, math.inf)
    assert found.verdict is Verdict.CANNOT_TELL


def test_a_metric_that_was_not_measured_is_left_out() -> None:
    assert [each.metric for each in compared([1.0], [1.0], TTFT, TPOT)] == [TTFT]


def test_loads_are_compared_apart_and_only_those_of_both() -> None:
    a = run("a", stage(1.0, rate=1.0), stage(2.0, rate=2.0), stage(3.0, rate=3.0))
    b = run("b", stage(1.0, rate=1.0), stage(2.5, rate=2.0), stage(3.0, rate=4.0))
    found = compare_pairs([a], [b], ComparisonOptions(metrics=[TTFT]))
    assert [(each.load.request_rate, round(each.difference.value, 6)) for each in found] == [(1.0, 0.0), (2.0, 0.25)]


def test_a_margin_of_the_caller_replaces_that_of_the_metric() -> None:
    a, b = ([run(f"{ttft}/{at}", stage(ttft, seed=at)) for at in range(3)] for ttft in (1.0, 1.05))
    (found,) = compare_pairs(a, b, ComparisonOptions(metrics=[TTFT], margins={TTFT.key: 0.2}))
    assert found.margin == 0.2
    assert found.verdict is Verdict.NO_DIFFERENCE


def test_values_of_zero_are_compared_in_their_unit() -> None:
    (found,) = compared([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert found.difference.scale is Scale.ABSOLUTE
    assert (found.verdict, found.interval) == (Verdict.NO_DIFFERENCE, (0.0, 0.0))
