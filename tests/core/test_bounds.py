"""Impossible values become NaN before they enter a sum."""

import math

import pytest

from servetop.core.bounds import LARGEST_VALUE, bounded


@pytest.mark.parametrize("value", [0, 0.5, 7, LARGEST_VALUE])
def test_a_plausible_value_is_kept_as_a_float(value: float) -> None:
    assert bounded(value) == value
    assert isinstance(bounded(value), float)


@pytest.mark.parametrize("value", [None, -1e-9, math.nan, math.inf, -math.inf, 2e18, 10**400])
def test_a_missing_or_impossible_value_becomes_nan(value: float | None) -> None:
    assert math.isnan(bounded(value))
