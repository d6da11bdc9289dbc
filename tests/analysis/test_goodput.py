"""Goodput bounds from histograms, compared with the goodput of the requests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.goodput import goodput_bounds, meets_objectives, share_within
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.histogram import LogHistogram


def test_the_share_within_a_limit_includes_values_at_the_limit() -> None:
    histogram = LogHistogram.of([0.1, 0.2, 0.3, 4.0])
    assert [share_within(histogram, limit) for limit in (0.05, 0.25, 1.0, 9.0)] == [0.0, 0.5, 0.75, 1.0]


def test_without_values_or_limits_goodput_is_unknown() -> None:
    assert math.isnan(share_within(LogHistogram.of([]), 1.0))
    assert math.isnan(goodput_bounds({"ttft": LogHistogram.of([1.0])}, {})[0])
    assert math.isnan(goodput_bounds({"ttft": LogHistogram.of([1.0]), "tpot": LogHistogram.of([])}, {"tpot": 1.0})[1])


def test_the_bounds_are_equal_for_one_limit_and_differ_for_two() -> None:
    histograms = {"ttft": LogHistogram.of([0.1] * 8 + [9.0] * 2), "e2el": LogHistogram.of([1.0] * 7 + [99.0] * 3)}
    assert goodput_bounds(histograms, {"ttft": 0.5}) == pytest.approx((0.8, 0.8))
    assert goodput_bounds(histograms, {"ttft": 0.5, "e2el": 5.0}) == pytest.approx((0.5, 0.7))


def test_without_reasoning_ttfot_is_ttft() -> None:
    ttft, ttfot = LogHistogram.of([0.1] * 8 + [9.0] * 2), LogHistogram.of([0.4] * 5 + [9.0] * 5)
    assert goodput_bounds({"ttft": ttft, "ttfot": LogHistogram.of([])}, {"ttfot": 0.5}) == pytest.approx((0.8, 0.8))
    assert goodput_bounds({"ttft": ttft, "ttfot": ttfot}, {"ttfot": 0.5}) == pytest.approx((0.5, 0.5))


def request(*, waited: float, ttft: float, status: RequestStatus = RequestStatus.OK) -> RequestRecord:
    times = np.array([waited + ttft, waited + ttft + 0.1, waited + ttft + 0.2])
    return RequestRecord(
        id=0, stage=0, due=0.0, sent=waited, first_token_at=float(times[0]), done_at=float(times[-1]), prompt_tokens=1,
        output_tokens=3, status=status, chunk_times=times, chunk_tokens=np.ones(3, dtype=np.int64),
    )  # fmt: skip


def test_time_in_the_clients_queue_counts_only_from_due() -> None:
    late = request(waited=2.0, ttft=0.1)
    for limits in ({"ttft": 0.5}, {"e2el": 0.5}, {"ttfot": 0.5}):
        assert meets_objectives(late, limits)
        assert not meets_objectives(late, limits, from_due=True)
    assert meets_objectives(late, {"tpot": 0.11}, from_due=True)
    assert not meets_objectives(late, {"tpot": 0.09})


def test_a_request_that_failed_meets_no_objective() -> None:
    for status in (RequestStatus.ERROR, RequestStatus.TIMEOUT, RequestStatus.TRUNCATED, RequestStatus.CANCELLED):
        assert not meets_objectives(request(waited=0.0, ttft=0.1, status=status), {"ttft": 0.5})


times = st.floats(1e-3, 100.0)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=50), times, times)
def test_the_true_goodput_lies_between_the_bounds(
    requests: list[tuple[float, float]], one: float, other: float
) -> None:
    ttft, e2el = np.array(requests).T
    near = (np.abs(ttft / one - 1) < 0.03).any() or (np.abs(e2el / other - 1) < 0.03).any()
    if near:
        return  # within a histogram's error of the limit
    histograms = {"ttft": LogHistogram.of(ttft), "e2el": LogHistogram.of(e2el)}
    low, high = goodput_bounds(histograms, {"ttft": one, "e2el": other})
    assert low - 1e-9 <= float(((ttft <= one) & (e2el <= other)).mean()) <= high + 1e-9
