"""Impossible values become NaN before they enter a sum."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.bounds import LARGEST_VALUE, all_bounded, bounded


@pytest.mark.parametrize("value", [0, 0.5, 7, LARGEST_VALUE])
def test_a_plausible_value_is_kept_as_a_float(value: float) -> None:
    assert bounded(value) == value
    assert isinstance(bounded(value), float)


@pytest.mark.parametrize("value", [None, -1e-9, math.nan, math.inf, -math.inf, 2e18, 10**400])
def test_a_missing_or_impossible_value_becomes_nan(value: float | None) -> None:
    assert math.isnan(bounded(value))


@given(st.lists(st.none() | st.floats()))
def test_many_values_are_bounded_as_one(values: list[float | None]) -> None:
    np.testing.assert_array_equal(all_bounded(values), [bounded(value) for value in values])
