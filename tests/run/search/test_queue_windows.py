"""Whether a window shows that the queue grows."""

from __future__ import annotations

from servetop.run.search.load_windows import LoadWindow, Trend
from servetop.run.search.queue_windows import expected_in_flight, queue_windows


def window(
    load: float, *, trend: Trend, seconds: float = 60.0, level: float, reached: float | None = None
) -> LoadWindow:
    return LoadWindow(
        load=load, begin=0.0, seconds=seconds, counted=100.0, missed=0.0, events=(), trend=trend, in_flight=level,
        reached=level if reached is None else reached, latency=1.0,
    )  # fmt: skip


CALM = window(10.0, trend=Trend.SETTLED, level=10.0)


def shares(*windows: LoadWindow) -> list[tuple[float, float]]:
    return [(each.counted, each.missed) for each in queue_windows(windows, longest=120.0)]


def test_a_settled_load_has_no_growing_queue_in_any_of_its_parts() -> None:
    assert shares(CALM) == [(6.0, 0.0)]


def test_a_short_window_has_fewer_parts() -> None:
    assert shares(window(10.0, trend=Trend.SETTLED, seconds=4.0, level=10.0)) == [(3.0, 0.0)]


def test_requests_in_flight_that_rise_for_a_short_time_show_nothing() -> None:
    assert shares(CALM, window(12.0, trend=Trend.RISING, level=14.0)) == [(6.0, 0.0), (0.0, 0.0)]


def test_a_rise_that_does_not_end_is_a_queue_that_grows() -> None:
    assert shares(CALM, window(12.0, trend=Trend.RISING, seconds=120.0, level=20.0))[1] == (20.0, 20.0)


def test_a_rise_far_beyond_what_smaller_loads_suggest_is_one_at_once() -> None:
    assert shares(CALM, window(20.0, trend=Trend.RISING, seconds=5.0, level=50.0, reached=90.0))[1] == (20.0, 20.0)


def test_a_rise_that_random_arrivals_would_make_too_is_none() -> None:
    """80 requests that are due come and end with a standard error of 13."""
    few, many = (window(4.0, trend=Trend.RISING, seconds=20.0, level=10.0, reached=each) for each in (37.0, 39.0))
    assert shares(few) == [(0.0, 0.0)]
    assert shares(many) == [(20.0, 20.0)]


def test_requests_in_flight_grow_with_the_load() -> None:
    assert expected_in_flight([CALM], 20.0) == 20.0
    assert expected_in_flight([], 20.0) == 2.0
    assert expected_in_flight([CALM], 5.0) == 2.0
