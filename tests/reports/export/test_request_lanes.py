"""Requests in lanes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servetop.reports.export.request_lanes import request_lanes


def test_a_lane_is_taken_again_as_soon_as_it_is_free() -> None:
    begin, end = np.array([0.0, 1.0, 2.0, 4.0]), np.array([4.0, 2.0, 3.0, 5.0])
    assert request_lanes(begin, end, most=8).tolist() == [0, 1, 1, 0]


def test_requests_beyond_the_last_lane_have_none() -> None:
    begin, end = np.array([0.0, 0.0, 0.0, 5.0]), np.array([4.0, 4.0, 4.0, 6.0])
    assert request_lanes(begin, end, most=2).tolist() == [0, 1, -1, 0]


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 20)), max_size=60), st.integers(1, 8))
def test_no_two_requests_of_a_lane_overlap(spans: list[tuple[float, float]], most: int) -> None:
    begin = np.array([start for start, _ in spans], dtype=np.float64)
    end = begin + np.array([length for _, length in spans], dtype=np.float64)
    lanes = request_lanes(begin, end, most=most)
    assert set(lanes.tolist()) <= set(range(-1, most))
    for lane in set(lanes.tolist()) - {-1}:
        own = sorted(zip(begin[lanes == lane].tolist(), end[lanes == lane].tolist(), strict=True))
        assert all(before[1] <= after[0] for before, after in pairwise(own))
