"""Goodput bounds from histograms, compared with the goodput of the requests."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.goodput import attainment, goodput_bounds, share_within
from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, Tick
from tests.analysis.story_runs import ramp, story_from


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


def counted(*counts: tuple[int, int | None, int | None]) -> TickHistory:
    """Ticks in which so many requests ended, met all objectives from sent, and from due."""
    return TickHistory(
        Tick(client=ClientTick(index=index, ok=ok - 1, errors=1, cancelled=5, good=good, good_due=good_due))
        for index, (ok, good, good_due) in enumerate(counts)
    )


def test_attainment_is_of_all_requests_that_ended_in_the_window_and_in_the_run() -> None:
    found = attainment(counted((10, 9, 9), (10, 9, 4), (20, 12, 2)), 1, 3)
    assert (found.window, found.window_served) == pytest.approx((6 / 30, 21 / 30))
    assert (found.run, found.run_served) == pytest.approx((15 / 40, 30 / 40))
    assert found.differs
    assert not attainment(counted((10, 9, 9)), 0, 1).differs


def test_ticks_without_counts_are_not_judged() -> None:
    found = attainment(counted((10, None, None), (10, 5, 5), (10, None, None)), 0, 3)
    assert (found.window, found.run) == pytest.approx((0.5, 0.5))
    unknown = attainment(counted((10, None, None)), 0, 1)
    assert math.isnan(unknown.window)
    assert math.isnan(unknown.run)


def test_each_objective_has_its_share_of_the_window_and_ttft_counts_from_due() -> None:
    client = ClientTick(
        index=3, ttft=LogHistogram.of([0.1] * 4), ttft_due=LogHistogram.of([0.1, 0.1, 0.1, 2.0]),
        tpot=LogHistogram.of([0.02, 0.08]),
    )  # fmt: skip
    stats = live_stats(TickHistory([Tick(client=client)]), 1.0, objectives={"ttft": 0.5, "ttfot": 0.5, "tpot": 0.05})
    assert stats.within == pytest.approx({"ttft": 0.75, "ttfot": 0.75, "tpot": 0.5})
    assert stats.waits_in_client
    assert live_stats(TickHistory([Tick(client=client)]), 1.0).within == {}


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


def test_a_share_from_due_is_named_where_goodput_from_sent_is_higher() -> None:
    def counted(good_due: int) -> list[str]:
        ticks = [
            replace(each, client=replace(each.client, good=3, good_due=good_due)) for each in ramp(waiting=[0.0] * 40)
        ]
        return [line.text for line in story_from(ticks, goodput={"ttft": 0.01}).lines]

    assert "only 66% of the requests had TTFT ≤ 10 ms, counted from due" in counted(2)
    assert not [text for text in counted(3) if "counted from due" in text]
