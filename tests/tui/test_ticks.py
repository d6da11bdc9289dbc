"""Tick labels of charts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.text.formats import axis_number
from servetop.tui.drawing.scale import round_limit
from servetop.tui.drawing.ticks import time_ticks, value_ticks


@pytest.mark.parametrize(
    ("limit", "rows", "values"),
    [(40, 9, [40, 30, 20, 10, 0]), (12, 7, [10, 5, 0]), (300, 7, [300, 200, 100, 0]), (1, 5, [1, 0.5, 0]),
     (2500, 3, [2000, 0]), (12, 4, [10, 0]), (8, 1, [8])],
)  # fmt: skip
def test_values_are_labelled_in_round_steps(limit: float, rows: int, values: list[float]) -> None:
    assert list(dict(sorted(value_ticks(limit, rows=rows).items())).values()) == values


@given(st.floats(1e-6, 1e12), st.integers(3, 60))
def test_every_chart_has_two_to_five_different_labels_in_different_rows(peak: float, rows: int) -> None:
    ticks = dict(sorted(value_ticks(round_limit(peak), rows=rows).items()))
    assert 2 <= len(ticks) <= 5
    assert set(ticks) <= set(range(rows))
    assert all(below < above for above, below in pairwise(ticks.values()))
    if round_limit(peak) >= 0.01:  # smaller values have three decimals, too few for steps of 0.0005
        assert len({axis_number(value) for value in ticks.values()}) == len(ticks)


@given(st.floats(1e-9, 9e11) | st.just(0.0))
def test_a_label_has_at_most_five_characters(value: float) -> None:
    assert len(axis_number(value)) <= 5


def test_whole_values_have_no_labels_between_them() -> None:
    assert sorted(value_ticks(1.0, rows=9, smallest_step=1.0).values()) == [0.0, 1.0]


def test_times_of_the_run_are_labelled_at_round_seconds_inside_the_window() -> None:
    assert time_ticks((6.0, 126.0), width=48, from_now=False) == {10: "0:30", 22: "1:00", 34: "1:30", 46: "2:00"}
    assert time_ticks((0.0, 3600.0), width=80, from_now=False)[13] == "10:00"


def test_distances_from_now_stay_in_place_while_the_chart_scrolls() -> None:
    labels = {0: "−2:00", 12: "−1:30", 24: "−1:00", 36: "−0:30"}
    assert time_ticks((6.0, 126.0), width=48, from_now=True) == labels
    assert time_ticks((7.0, 127.0), width=48, from_now=True) == labels


@given(st.floats(0, 1e6), st.floats(15, 1e6), st.integers(12, 240))
def test_labels_of_a_time_axis_do_not_touch(start: float, span: float, width: int) -> None:
    labels = sorted(time_ticks((start, start + span), width=width, from_now=False).items())
    assert all(column + 1 + len(label) < following for (column, label), (following, _) in pairwise(labels))
