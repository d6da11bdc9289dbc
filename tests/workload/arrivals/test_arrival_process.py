"""Arrival processes: rate, spread, order and seed."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.workload.arrivals.arrival_process import AllAtOnce, ArrivalProcess, ConstantArrivals, GammaArrivals
from servetop.workload.arrivals.arrival_spec import arrivals_for

rates = st.floats(min_value=0.01, max_value=5000)
shapes = st.one_of(st.floats(min_value=0.1, max_value=50), st.just(math.inf))


def first(process: ArrivalProcess, count: int) -> Sequence[float]:
    return list(itertools.islice(process.due_times(), count))


def test_constant_arrivals_start_at_zero_and_keep_exact_spacing() -> None:
    assert first(ConstantArrivals(8.0), 4) == [0.0, 0.125, 0.25, 0.375]
    assert first(ConstantArrivals(3.0), 3001)[-1] == 1000.0


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gamma_gaps_have_the_given_mean_and_coefficient_of_variation(burstiness: float) -> None:
    times = np.array(first(GammaArrivals(50.0, burstiness, (7,)), 40_000))
    gaps = np.diff(times, prepend=0.0)
    assert gaps.mean() == pytest.approx(1 / 50.0, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(1 / math.sqrt(burstiness), rel=0.03)


def test_poisson_counts_per_second_vary_as_much_as_their_mean() -> None:
    times = np.array(first(GammaArrivals(20.0, 1.0, (3,)), 20_000))
    counts = np.bincount(times.astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.15)


@given(rates, shapes, st.integers(0, 2**31))
def test_due_times_ascend_from_zero_and_are_fixed_by_the_seed(rate: float, burstiness: float, seed: int) -> None:
    times = first(arrivals_for(rate, burstiness=burstiness, seed=(seed, 1)), 600)
    assert times[0] >= 0
    assert all(before <= after for before, after in itertools.pairwise(times))
    assert times == first(arrivals_for(rate, burstiness=burstiness, seed=(seed, 1)), 600)


def test_another_seed_gives_different_times() -> None:
    assert first(GammaArrivals(5.0, 1.0, (1, 0)), 5) != first(GammaArrivals(5.0, 1.0, (1, 1)), 5)


def test_an_infinite_rate_is_all_at_once_and_an_infinite_burstiness_is_even() -> None:
    assert arrivals_for(math.inf, burstiness=1.0, seed=(0,)) == AllAtOnce()
    assert first(AllAtOnce(), 3) == [0.0, 0.0, 0.0]
    assert arrivals_for(2.0, burstiness=math.inf, seed=(0,)) == ConstantArrivals(2.0)
