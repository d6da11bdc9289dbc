"""Means over the starts of an engine, and the interval of Student's t around them."""

from __future__ import annotations

import pytest

from servetop.analysis.sweep.start_mean import mean_of_starts, repeats_text, spread_text


def test_the_interval_of_three_starts_is_that_of_two_degrees_of_freedom() -> None:
    found = mean_of_starts([10.0, 11.0, 12.0], [0, 1, 2])
    assert found is not None
    assert (found.mean, found.starts) == (11.0, 3)
    assert found.half_width == pytest.approx(4.303 * 1.0 / 3**0.5, rel=1e-3)  # t(0.975; 2) of any table
    assert found.interval == pytest.approx((8.516, 13.484), abs=1e-3)


def test_repeats_of_one_start_count_as_one_value() -> None:
    apart, together = (mean_of_starts([10.0, 20.0, 12.0], starts) for starts in ([0, 0, 1], [0, 0, 0]))
    assert apart is not None
    assert (apart.mean, apart.starts) == (13.5, 2)
    assert apart.half_width == pytest.approx(12.706 * 1.5, rel=1e-3)  # means 15 and 12
    assert together is not None
    assert (together.mean, together.starts, together.interval) == (14.0, 1, None)


def test_equal_starts_have_an_interval_without_width() -> None:
    found = mean_of_starts([3.0, 3.0], [0, 1])
    assert found is not None
    assert found.interval == (3.0, 3.0)


def test_an_interval_does_not_reach_below_zero() -> None:
    found = mean_of_starts([303.0, 371.0], [0, 1])
    assert found is not None
    assert found.half_width == pytest.approx(432.0, rel=1e-3)  # 12.706 * 34
    assert found.interval == pytest.approx((0.0, 769.0), rel=1e-3)
    assert (spread_text(found.mean, found.interval or (0, 0)), found.text) == ("≤769", "337 [0, 769]")


@pytest.mark.parametrize(
    ("values", "spread", "text"),
    [([1600.0, 1610.0], "±64", "1,605 ±64"), ([0.0, 0.0], "±0", "0 ±0"), ([7.0, 7.0], "±0", "7 ±0")],
)
def test_other_intervals_are_said_by_their_half(values: list[float], spread: str, text: str) -> None:
    found = mean_of_starts(values, [0, 1])
    assert found is not None
    assert found.interval is not None
    assert (spread_text(found.mean, found.interval), found.text) == (spread, text)


def test_what_was_not_measured_is_of_no_start() -> None:
    found = mean_of_starts([None, 4.0], [0, 1])
    assert found is not None
    assert (found.mean, found.starts, found.interval, found.text) == (4.0, 1, None, "4")
    assert mean_of_starts([None], [0]) is None


@pytest.mark.parametrize(
    ("repeats", "starts", "text"),
    [(3, 3, "of 3 starts"), (3, 1, "of 3 repeats of one start"), (4, 2, "of 4 repeats in 2 starts")],
)
def test_the_number_of_starts_is_said(repeats: int, starts: int, text: str) -> None:
    assert repeats_text(repeats, starts) == text
