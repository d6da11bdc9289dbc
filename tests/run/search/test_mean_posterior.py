"""The posterior of the largest load at which a mean is within its limit, from means of known curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from servetop.run.search.load_posterior import LoadPosterior, possible_loads
from servetop.run.search.load_windows import LoadWindow, Trend
from servetop.run.search.mean_posterior import mean_posterior
from servetop.run.search.window_mean import WindowMean

LOADS = possible_loads(1.0, 100.0)
LIMIT = 0.2


def window(load: float, mean: float, *, error: float = 0.03, trend: Trend = Trend.SETTLED) -> LoadWindow:
    return LoadWindow(
        load=load, begin=0.0, seconds=20.0, counted=100.0, missed=0.0, events=(), trend=trend, in_flight=5.0,
        reached=5.0, latency=0.5, mean=WindowMean(value=mean, error=error, freedom=7),
    )  # fmt: skip


def found(windows: Sequence[LoadWindow]) -> LoadPosterior:
    return mean_posterior(windows, limit=LIMIT, loads=LOADS)


@pytest.mark.parametrize("slope", [0.4, 2.0, 15.0])
def test_the_answer_is_where_the_curve_crosses_the_limit(slope: float) -> None:
    loads = (6.0, 12.0, 18.0, 19.0, 20.0, 21.0, 22.0, 30.0)
    noise = np.random.default_rng(3).normal(0, 0.03, len(loads))
    windows = [
        window(load, LIMIT * (load / 20.0) ** slope * np.exp(each)) for load, each in zip(loads, noise, strict=True)
    ]
    posterior = found(windows)
    low, high = posterior.interval
    assert low < 20.0 < high
    assert posterior.slope == pytest.approx(slope, rel=0.8)


def test_a_smaller_error_gives_a_narrower_interval() -> None:
    loads = (10.0, 18.0, 20.0, 22.0, 30.0)
    widths = []
    for error in (0.02, 0.1):
        low, high = found([window(load, LIMIT * (load / 20.0) ** 3, error=error) for load in loads]).interval
        widths.append(high / low)
    assert 1 < widths[0] < widths[1]


def test_loads_far_apart_bound_the_answer_only() -> None:
    low, high = found([window(5.0, 0.05), window(50.0, 5.0)]).interval
    assert 4.0 < low < 7.0
    assert 35.0 < high < 60.0


def test_requests_in_flight_that_rise_show_that_a_load_is_too_high_but_not_that_it_is_kept() -> None:
    calm = [window(5.0, 0.05)]
    assert found([*calm, window(20.0, 0.1, trend=Trend.RISING)]).quantile(0.9) > 40.0
    assert found([*calm, window(20.0, 0.9, trend=Trend.RISING)]).quantile(0.9) < 20.0
    assert found([*calm, window(20.0, 0.9, error=0.8, trend=Trend.RISING)]).quantile(0.9) < 20.0


def test_a_load_without_an_error_shows_nothing() -> None:
    alone = window(20.0, 9.0)
    alone = LoadWindow(**{name: getattr(alone, name) for name in alone.__slots__} | {"mean": None})
    assert found([alone]).quantile(0.5) == pytest.approx(found([]).quantile(0.5))


def test_a_flat_curve_above_its_limit_has_its_answer_below_the_least_load() -> None:
    flat = [window(load, LIMIT * 1.2 * load**0.08) for load in (1.0, 1.1, 2.0, 4.0, 8.0, 16.0)]
    assert found(flat).quantile(0.975) < 1.0
