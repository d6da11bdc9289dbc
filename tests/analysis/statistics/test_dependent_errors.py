"""Standard errors of correlated series are those that repeated runs show."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.analysis.statistics.dependent_errors import effective_size, ratio_error, standard_error


def _correlated(random: np.random.Generator, count: int) -> np.ndarray:
    """Every value is repeated 20 times, so that 1,600 of them are 80 independent ones."""
    return np.repeat(random.normal(0, 1, count // 20), 20)


def test_the_error_of_a_correlated_series_is_that_of_repeated_runs() -> None:
    random = np.random.default_rng(2)
    runs = [_correlated(random, 1600) for _ in range(200)]
    true = float(np.std([run.mean() for run in runs]))
    assert np.mean([standard_error(run) for run in runs]) == pytest.approx(true, rel=0.15)
    assert np.median([effective_size(run) for run in runs]) == pytest.approx(80, rel=0.2)


def test_few_values_have_no_error_and_constants_count_one_by_one() -> None:
    assert np.isnan(standard_error(np.arange(20.0)))
    assert effective_size(np.full(100, 3.0)) == 100


def test_the_error_of_a_ratio_is_that_of_repeated_runs() -> None:
    random = np.random.default_rng(3)
    ratios, errors = [], []
    for _ in range(200):
        below = random.uniform(50, 150, 320)
        above = below * (0.4 + 0.1 * _correlated(random, 320))
        ratios.append(above.sum() / below.sum())
        errors.append(ratio_error(above, below))
    assert np.mean(errors) == pytest.approx(np.std(ratios), rel=0.2)
    assert np.isnan(ratio_error(np.ones(8), np.ones(8)))
