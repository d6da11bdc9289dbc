"""Intervals around estimated rates contain the estimate, and what the run itself proved narrows them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.analysis.diagnosis.rate_factors import KNEE, SUSTAINABLE
from servetop.analysis.diagnosis.rate_interval import scaled, within
from servetop.analysis.diagnosis.wording import interval_text, without_intervals
from servetop.core.text.formats import rate_number

RATES = st.floats(0.01, 1e4)


@settings(deadline=None)
@given(
    rate=RATES,
    factors=st.sampled_from([*SUSTAINABLE.values(), *KNEE.values()]),
    kept=st.none() | RATES,
    missed=st.none() | RATES,
)
def test_an_interval_contains_its_rate_and_nothing_that_was_kept_or_missed(
    rate: float, factors: tuple[float, float], kept: float | None, missed: float | None
) -> None:
    found = within(scaled(rate, factors), rate, kept, missed)
    assert found is not None
    low, high = found
    assert low <= rate <= high
    assert kept is None or low >= min(kept, rate) or kept > rate
    assert missed is None or high <= missed or missed < rate


@pytest.mark.parametrize("rate", [None, 0.0, math.inf, math.nan])
def test_what_is_no_rate_has_no_interval(rate: float | None) -> None:
    assert scaled(rate, (0.9, 1.1)) is None
    assert within(scaled(rate, (0.9, 1.1)), rate, 1.0, 2.0) is None


def test_without_factors_there_is_no_interval() -> None:
    assert scaled(10.0, None) is None


@pytest.mark.parametrize(
    ("ends", "text"),
    [(None, ""), ((4.6149, 5.8701), " [4.61, 5.87]"), ((9.0, 11.0), " [9, 11]"), ((0.0, 0.0123), " [0, 0.0123]")],
)
def test_an_interval_is_written_with_three_digits_and_can_be_left_out(
    ends: tuple[float, float] | None, text: str
) -> None:
    assert interval_text(ends) == text
    sentence = f"overloaded at replica 1 (http://[::1]:80); sustainable ≈ 5{interval_text(ends)}; try [1, a]"
    assert without_intervals(sentence) == "overloaded at replica 1 (http://[::1]:80); sustainable ≈ 5; try [1, a]"


@pytest.mark.parametrize(("low", "high"), [(1030.0, 1250.0), (1e-5, 2e-5)])
def test_very_large_and_small_intervals_can_be_left_out_too(low: float, high: float) -> None:
    assert without_intervals(f"≈ 3{interval_text((low, high))} req/s") == "≈ 3 req/s"


@pytest.mark.parametrize(
    ("rate", "text"), [(0.52, "0.52"), (11.24, "11.2"), (999.4, "999"), (999.6, "1,000"), (12_500.0, "12,500")]
)
def test_large_rates_are_written_in_full(rate: float, text: str) -> None:
    assert rate_number(rate) == text
    assert without_intervals(f"≈ {text} req/s{interval_text((rate, 2 * rate))} with") == f"≈ {text} req/s with"
