"""Standard errors of dependent series: their intervals contain the true mean as often as they claim."""

import math

import numpy as np
import pytest

from servetop.analysis.statistics.batch_means import standard_error
from servetop.analysis.statistics.student_t import quantile
from servetop.core.arrays import FloatArray


def autoregressive(rho: float, *, seed: int, size: int = 32) -> FloatArray:
    generator = np.random.default_rng(seed)
    values = [generator.normal()]
    for noise in generator.normal(size=size - 1) * math.sqrt(1 - rho * rho):
        values.append(rho * values[-1] + noise)
    return np.array(values)


def coverage(rho: float, *, series: int = 1000) -> float:
    hits = 0
    for seed in range(series):
        values = autoregressive(rho, seed=seed)
        error = standard_error(values)
        hits += abs(values.mean()) <= quantile(0.975, error.df) * error.value
    return hits / series


@pytest.mark.parametrize(("rho", "least"), [(-0.3, 0.93), (0.0, 0.93), (0.3, 0.90), (0.6, 0.84)])
def test_95_percent_intervals_contain_the_mean_of_a_dependent_series(rho: float, least: float) -> None:
    assert coverage(rho) >= least


def test_dependence_enlarges_the_error() -> None:
    independent, dependent = (np.mean([standard_error(autoregressive(rho, seed=s)).value for s in range(200)])
                              for rho in (0.0, 0.6))  # fmt: skip
    assert dependent > 1.4 * independent


def test_a_trend_has_a_large_error_with_few_degrees_of_freedom() -> None:
    error = standard_error(np.linspace(-1.0, 1.0, 32))
    assert error.value > 0.3
    assert error.df < 7


def test_too_few_observations_have_an_infinite_error() -> None:
    assert standard_error(np.ones(7)).value == math.inf


def test_a_constant_series_has_no_error() -> None:
    assert standard_error(np.full(32, 3.0)).value == 0.0


def slow(correlation_time: float, *, seed: int, size: int = 32, steps: int = 20) -> FloatArray:
    """Means of consecutive pieces of a series whose correlation falls as exp(-t / τ)."""
    fine = autoregressive(math.exp(-1 / (correlation_time * steps)), seed=seed, size=size * steps)
    return np.asarray(fine.reshape(size, steps).mean(axis=1), dtype=np.float64)


def slow_coverage(correlation_time: float, *, known: float, series: int = 500) -> float:
    hits = 0
    for seed in range(series):
        values = slow(correlation_time, seed=seed)
        error = standard_error(values, correlation_time=known)
        hits += abs(values.mean()) <= quantile(0.975, error.df) * error.value
    return hits / series


def test_what_short_batches_miss_of_a_slow_series_is_added() -> None:
    assert slow_coverage(1.0, known=0.0) < 0.92
    assert slow_coverage(1.0, known=1.0) >= 0.94


def test_a_known_correlation_time_only_enlarges_the_error() -> None:
    values = autoregressive(0.0, seed=1)
    errors = [standard_error(values, correlation_time=each).value for each in (0.0, 1e-6, 0.1, 1.0, 100.0)]
    assert errors == sorted(errors)
    assert errors[1] == pytest.approx(errors[0], rel=1e-4)
