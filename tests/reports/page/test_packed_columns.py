"""Columns survive the page's base64, and rounding keeps each value on its side of a limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.reports.page.packed_columns import packed, rounded_beside, unpacked


@pytest.mark.parametrize(
    ("kind", "values"), [("f4", [0.5, np.nan, np.inf]), ("u1", [0, 1]), ("u2", [65_535]), ("u4", [])]
)
def test_a_column_reads_back(kind: str, values: list[float]) -> None:
    column = packed(np.array(values), kind)
    assert column["type"] == kind
    np.testing.assert_array_equal(unpacked(column), np.array(values))


@given(limit=st.floats(1e-6, 1e4), steps=st.lists(st.integers(-5, 5), min_size=1))
def test_values_next_to_a_limit_stay_on_its_side(limit: float, steps: list[int]) -> None:
    values = np.array([limit * (1 + step * 2**-52) for step in steps])
    narrow = rounded_beside(values, limit)
    np.testing.assert_array_equal(narrow.astype(np.float64) <= limit, values <= limit)
    np.testing.assert_allclose(narrow, values, rtol=2.5e-7)


def test_unknown_and_infinite_values_and_those_without_a_limit_are_only_rounded() -> None:
    values = np.array([np.nan, np.inf, 0.1])
    np.testing.assert_array_equal(rounded_beside(values, 0.1)[:2], values[:2].astype(np.float32))
    np.testing.assert_array_equal(rounded_beside(values, None), values.astype(np.float32))
