"""Ranges of a sweep file, as texts and as tables."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.errors import UsageError
from servetop.run.sweep.value_range import values_of


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([8, 32], [8, 32]),
        (8, [8]),
        ("inf", ["inf"]),
        ("lognormal:input_mean=512", ["lognormal:input_mean=512"]),
        ("2:32:x2", [2, 4, 8, 16, 32]),
        ("2:33:x2", [2, 4, 8, 16, 32]),
        ("10:30:10", [10, 20, 30]),
        ("0.1:0.5:0.2", [0.1, 0.3, 0.5]),
        ({"from": 2, "to": 32, "steps": 4}, [2, 12, 22, 32]),
        ({"from": 0, "to": 0.9, "step": 0.3}, [0, 0.3, 0.6, 0.9]),
        ({"from": 256, "to": 4096, "factor": 4}, [256, 1024, 4096]),
        ({"top_p": 0.9}, [{"top_p": 0.9}]),
    ],
)
def test_a_value_a_list_or_a_range(value: Any, expected: list[Any]) -> None:
    assert values_of(value, where="rate") == expected


@pytest.mark.parametrize(
    "value",
    [
        [],
        "32:2:x2",
        "2:32:x1",
        "1:1000000:0.01",
        {"from": 2, "to": 32},
        {"from": 2, "to": 32, "steps": 1},
        {"from": 2, "to": 32, "step": 1, "factor": 2},
        {"from": "2", "to": 32, "step": 1},
        {"from": 2, "to": 32, "step": 0},
        {"from": 0, "to": 32, "factor": 2},
        {"from": 1, "to": math.inf, "factor": 2},
        {"from": 1, "to": math.nan, "factor": 2},
        {"from": 1, "to": 10**400, "steps": 3},
        {"from": False, "to": 32, "steps": 3},
        f"1:{'9' * 400}:x2",
        f"1:{'9' * 400}:1",
    ],
)
def test_a_range_that_is_none_is_refused_with_what_to_write(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^rate.*(write|give|use)"):
        values_of(value, where="rate")


@given(st.integers(1, 1000), st.integers(0, 1000), st.integers(2, 50))
def test_steps_begin_and_end_with_the_given_numbers(first: int, more: int, steps: int) -> None:
    values = values_of({"from": first, "to": first + more, "steps": steps}, where="rate")
    assert (len(values), values[0], values[-1]) == (steps, first, first + more)
    assert list(values) == sorted(values)


@given(st.integers(1, 1000), st.integers(1, 100_000), st.integers(2, 10))
def test_a_factor_multiplies_up_to_the_last_number(first: int, last: int, factor: int) -> None:
    if last < first:
        return
    values = values_of(f"{first}:{last}:x{factor}", where="rate")
    assert all(one * factor == other for one, other in itertools.pairwise(values))
    assert values[-1] <= last < values[-1] * factor
