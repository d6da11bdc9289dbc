"""Statistics of weighted samples equal NumPy's for the same samples repeated."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.statistics.percentiles import Distribution

samples = st.lists(st.tuples(st.floats(0, 1e4), st.integers(1, 9)), min_size=1, max_size=60)


def written_out(pairs: list[tuple[float, int]]) -> list[float]:
    return [value for value, weight in pairs for _ in range(weight)]


def distribution(pairs: list[tuple[float, int]]) -> Distribution:
    return Distribution.of(np.array([v for v, _ in pairs]), weights=np.array([w for _, w in pairs]))


@given(samples, st.sampled_from([0.0, 50.0, 90.0, 95.0, 99.0, 100.0]))
def test_percentiles_equal_numpys(pairs: list[tuple[float, int]], q: float) -> None:
    assert distribution(pairs).percentile(q) == pytest.approx(np.percentile(written_out(pairs), q), abs=1e-9)


@given(samples)
def test_mean_and_standard_deviation_equal_numpys(pairs: list[tuple[float, int]]) -> None:
    assert distribution(pairs).mean == pytest.approx(np.mean(written_out(pairs)), abs=1e-9)
    assert distribution(pairs).std == pytest.approx(np.std(written_out(pairs)), abs=1e-6)


@given(samples, samples)
def test_parts_can_be_merged(left: list[tuple[float, int]], right: list[tuple[float, int]]) -> None:
    merged, whole = Distribution.merged([distribution(left), distribution(right)]), distribution(left + right)
    assert merged.values.tolist() == whole.values.tolist()
    assert merged.weights.tolist() == whole.weights.tolist()


def test_several_percentiles_at_once_are_those_one_by_one() -> None:
    found, shares = Distribution.of(np.array([3.0, 1.0, 4.0, 1.0, 5.0])), np.array([0.0, 12.5, 50.0, 99.0, 100.0])
    assert found.percentiles(shares).tolist() == [found.percentile(each) for each in shares.tolist()]
    assert np.isnan(Distribution.of(np.array([])).percentiles(shares)).all()


def test_nan_and_zero_weights_are_omitted() -> None:
    left = Distribution.of(np.array([math.nan, 2.0, 1.0, 2.0]), weights=np.array([5, 1, 0, 1]))
    assert (left.values.tolist(), left.weights.tolist(), left.count) == ([2.0], [2], 2)


def test_without_samples_the_statistics_are_nan() -> None:
    nothing = Distribution.merged([])
    assert nothing.count == 0
    assert all(math.isnan(value) for value in (nothing.mean, nothing.std, nothing.percentile(50)))
