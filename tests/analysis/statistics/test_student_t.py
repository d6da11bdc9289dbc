"""Student's t against published tables (NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2)."""

import math

import pytest

from servetop.analysis.statistics.student_t import quantile, upper_tail


@pytest.mark.parametrize(
    ("probability", "df", "value"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 7, 2.365),
        (0.95, 10, 1.812),
        (0.995, 30, 2.750),
        (0.9, 100, 1.290),
    ],
)
def test_quantiles_are_those_of_the_tables(probability: float, df: float, value: float) -> None:
    assert quantile(probability, df) == pytest.approx(value, abs=6e-4)


def test_infinite_degrees_of_freedom_are_the_normal_distribution() -> None:
    assert quantile(0.975, math.inf) == pytest.approx(1.959964, abs=1e-6)
    assert upper_tail(0.0, math.inf) == 0.5


@pytest.mark.parametrize("df", [1.0, 3.7, 31.0, 4000.0])
def test_the_tail_beyond_a_quantile_has_its_probability(df: float) -> None:
    assert upper_tail(quantile(0.99, df), df) == pytest.approx(0.01, rel=1e-6)
    assert upper_tail(-2.0, df) == pytest.approx(1 - upper_tail(2.0, df))


def test_infinite_and_unknown_values_have_a_tail() -> None:
    assert upper_tail(math.inf, 5) == 0.0
    assert upper_tail(-math.inf, 5) == 1.0
    assert math.isnan(upper_tail(math.nan, 5))
