"""The summaries of guidellm's distributions: percentiles are values, and every token may count."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.reports.export.guidellm_distribution import distribution


def test_values_that_count_once() -> None:
    found = distribution([4.0, 1.0, 2.0, 2.0])
    assert (found["mean"], found["median"], found["mode"], found["count"], found["total_sum"]) == (
        2.25,
        2.0,
        2.0,
        4,
        9.0,
    )
    assert (found["min"], found["max"]) == (1.0, 4.0)
    assert found["percentiles"]["p25"] == 1.0  # type: ignore[index]
    assert found["percentiles"]["p99"] == 4.0  # type: ignore[index]


def test_values_that_count_by_their_tokens() -> None:
    found = distribution([10.0, 20.0, 99.0], [3.0, 1.0, 0.0])
    assert (found["mean"], found["median"], found["count"], found["max"]) == (12.5, 10.0, 4, 20.0)


def test_without_values_all_is_zero() -> None:
    found = distribution([])
    assert {found[name] for name in ("mean", "median", "std_dev", "min", "max", "count", "total_sum")} == {0.0}


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_moments_are_those_of_the_values(values: list[float]) -> None:
    found = distribution(values)
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["std_dev"] == pytest.approx(np.std(values), abs=1e-6 * (1 + max(values)))
    assert all(math.isfinite(each) and each in values for each in found["percentiles"].values())  # type: ignore[attr-defined]
