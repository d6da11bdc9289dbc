"""The mean of the samples of a load has an error that grows with the dependence of its requests."""

from __future__ import annotations

import math

import numpy as np
import pytest

from servetop.run.search.window_mean import window_mean

RANDOM = np.random.default_rng(5)


def test_the_mean_weighs_each_sample() -> None:
    found = window_mean(np.array([1.0, 3.0, 0.0]), np.array([0.5, 0.3, 0.0]))
    assert found is not None
    assert found.value == pytest.approx(0.2)


def test_requests_that_wait_behind_each_other_have_a_larger_error() -> None:
    values = RANDOM.exponential(0.2, 800)
    one = np.ones(values.size)
    apart, together = window_mean(one, values), window_mean(one, np.sort(values))
    assert apart is not None
    assert together is not None
    assert apart.error == pytest.approx(1 / math.sqrt(values.size), rel=0.6)
    assert together.error > 5 * apart.error


def test_the_interval_covers_the_mean_of_the_distribution() -> None:
    one, covered = np.ones(80), 0
    for _ in range(400):
        found = window_mean(one, RANDOM.exponential(0.2, 80))
        assert found is not None
        low, high = found.interval()
        covered += low <= 0.2 <= high
    assert covered >= 360  # 380 expected, 4.4 standard deviations


def test_a_short_time_has_a_larger_error_than_a_long_one_with_as_many_requests() -> None:
    values, one = RANDOM.exponential(0.2, 80), np.ones(80)
    short, long = window_mean(one, values, latencies=4.0), window_mean(one, values, latencies=400.0)
    assert short is not None
    assert long is not None
    assert short.value == long.value
    assert short.error > 2 * long.error


def test_a_mean_of_one_request_has_no_error() -> None:
    found = window_mean(np.array([1.0]), np.array([0.3]))
    assert found is not None
    assert (found.value, found.freedom, found.interval()) == (0.3, 0, (0.0, math.inf))


def test_without_samples_there_is_no_mean() -> None:
    assert window_mean(np.zeros(3), np.zeros(3)) is None
    assert window_mean(np.empty(0), np.empty(0)) is None


def test_equal_samples_still_have_an_error() -> None:
    found = window_mean(np.ones(40), np.full(40, 0.2))
    assert found is not None
    assert found.error == 0.01
