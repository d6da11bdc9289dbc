"""Differences of two arms: relative or absolute, from blocks or from starts, paired or not."""

import math

import numpy as np
import pytest

from servetop.analysis.comparison.compared_metrics import ComparedMetric, Scale, metric_named
from servetop.analysis.comparison.difference import ArmUnit, Basis, difference
from servetop.analysis.comparison.estimate import Estimate
from servetop.analysis.statistics.batch_means import StandardError


def throughput() -> ComparedMetric:
    found = metric_named("output_throughput")
    assert found is not None
    return found


def unit(value: float, *, error: float = 0.0, seed: int = 1, start: str = "a", noise: int = 0) -> ArmUnit:
    influence = np.random.default_rng(noise).normal(0.0, error * math.sqrt(32), 32)
    return ArmUnit(
        estimate=Estimate(
            value=value,
            influence=influence,
            error=StandardError(error, 15),
            low_error=error,
            high_error=error,
            count=1000,
        ),
        seed=seed,
        start=start,
    )


def test_a_relative_difference_is_a_fraction_of_a_with_its_interval() -> None:
    found = difference(throughput(), [unit(1000.0, error=5.0)], [unit(970.0, error=5.0)])
    low, high = found.interval
    assert found.value == pytest.approx(-0.03)
    assert found.basis is Basis.BLOCKS
    assert low == pytest.approx(-0.03 - 2.04 * math.hypot(5 / 1000, 5 / 970) * 0.97, abs=3e-4)
    assert low < -0.03 < high


def test_one_start_of_each_adds_the_assumed_spread_between_starts() -> None:
    arms = [unit(1000.0, error=1.0)], [unit(1000.0, error=1.0)]
    alone, spread = (difference(throughput(), *arms, start_spread=each) for each in (0.0, 0.01))
    assert alone.error == pytest.approx(math.sqrt(2) * 0.001)
    assert spread.error == pytest.approx(math.hypot(alone.error, math.sqrt(2) * 0.01))
    assert spread.start_variance == pytest.approx(2e-4)
    assert spread.df > alone.df


def starts_of(arm: str, *values: float) -> list[ArmUnit]:
    return [unit(value, seed=100 * ord(arm) + seed, start=f"{arm}{seed}") for seed, value in enumerate(values)]


def test_five_starts_of_each_use_their_own_spread_and_no_assumption() -> None:
    values = (990.0, 990.0, 1000.0, 1010.0, 1010.0)
    found = difference(throughput(), starts_of("a", *values), starts_of("b", *values), start_spread=0.2)
    assert found.basis is Basis.STARTS
    assert found.df == 8
    assert found.error == pytest.approx(0.01 * math.sqrt(2 / 5), rel=0.01)
    assert found.start_variance == pytest.approx(found.error**2)


@pytest.mark.parametrize(("assumed", "spread"), [(0.0, 0.01), (0.005, 0.01), (0.03, 0.03)])
def test_fewer_than_five_starts_vary_at_least_as_much_as_assumed(assumed: float, spread: float) -> None:
    values = (990.0, 1000.0, 1010.0)
    found = difference(throughput(), starts_of("a", *values), starts_of("b", *values), start_spread=assumed)
    assert found.basis is Basis.STARTS
    assert (found.df, found.starts) == (4, 3)
    assert found.error == pytest.approx(spread * math.sqrt(2 / 3), rel=0.01)
    assert found.start_variance == pytest.approx(found.error**2)


def test_few_starts_that_agree_by_chance_show_no_difference() -> None:
    a, b = starts_of("a", 1000.0, 1001.0, 1002.0), starts_of("b", 950.0, 951.0, 952.0)
    alone, assumed = (difference(throughput(), a, b, start_spread=each).interval for each in (0.0, 0.05))
    assert alone[1] < 0
    assert assumed[0] < 0 < assumed[1]


def test_starts_with_equal_seeds_are_compared_pair_by_pair() -> None:
    a = [unit(value, seed=seed, start=f"a{seed}") for seed, value in enumerate((800.0, 1000.0, 1200.0))]
    b = [unit(0.98 * value, seed=seed, start=f"b{seed}") for seed, value in enumerate((800.0, 1000.0, 1200.0))]
    found = difference(throughput(), a, b)
    assert found.basis is Basis.PAIRED_STARTS
    assert found.interval == pytest.approx((-0.02, -0.02))


def test_repeats_of_one_start_are_one_measurement_with_the_assumed_spread() -> None:
    a = [unit(1000.0 + step, error=6.0, start="a") for step in (-1, 0, 1)]
    b = [unit(1000.0 + step, error=6.0, start="b") for step in (-1, 0, 1)]
    found = difference(throughput(), a, b, start_spread=0.01)
    assert found.basis is Basis.BLOCKS
    assert found.within_variance == pytest.approx(2 * (0.006 / math.sqrt(3)) ** 2, rel=1e-3)
    assert found.start_variance == pytest.approx(2e-4)
    assert found.starts == 1


def test_two_starts_against_one_still_use_the_errors_within_the_runs() -> None:
    a = [unit(1000.0, error=6.0, start="a1"), unit(1010.0, error=6.0, start="a2", seed=2)]
    found = difference(throughput(), a, [unit(1005.0, error=6.0, start="b")], start_spread=0.01)
    assert found.basis is Basis.BLOCKS
    assert found.start_variance == pytest.approx(1.5e-4)


def test_one_start_against_several_uses_the_spread_of_those() -> None:
    a = [unit(value, seed=seed, start=f"a{seed}") for seed, value in enumerate((990.0, 1000.0, 1010.0))]
    found = difference(throughput(), a, [unit(1000.0, start="b")])
    assert found.basis is Basis.STARTS
    assert found.error == pytest.approx(0.01 * math.sqrt(4 / 3), rel=0.01)


def test_what_equal_requests_have_in_common_cancels() -> None:
    a, b = unit(1000.0, error=20.0, noise=7), unit(990.0, error=20.0, noise=7)
    paired = difference(throughput(), [a], [b], same_requests=True)
    alone = difference(throughput(), [a], [b])
    assert paired.basis is Basis.PAIRED_BLOCKS
    assert paired.error < alone.error / 10


def test_a_value_of_zero_makes_the_difference_absolute() -> None:
    found = difference(throughput(), [unit(0.0)], [unit(5.0, error=1.0)])
    assert found.scale is Scale.ABSOLUTE
    assert found.value == 5.0


def test_an_unknown_error_gives_an_unbounded_interval() -> None:
    wide = unit(1000.0, error=1.0)
    unbounded = ArmUnit(
        estimate=Estimate(
            value=900.0,
            influence=np.zeros(32),
            error=StandardError(1.0, 15),
            low_error=1.0,
            high_error=math.inf,
            count=50,
        ),
        seed=1,
        start="b",
    )
    found = difference(throughput(), [wide], [unbounded])
    assert found.interval[1] == math.inf
    assert found.deviation(0.01)[0] == -math.inf
