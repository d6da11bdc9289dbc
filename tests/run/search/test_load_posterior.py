"""The posterior of the largest load: from clear and from noisy windows, and of several objectives together."""

from __future__ import annotations

import math
from functools import partial
from random import Random

import numpy as np
import pytest

from servetop.run.search.load_posterior import (
    LoadPosterior,
    least_of,
    load_posterior,
    monotone_posterior,
    possible_loads,
)
from servetop.run.search.load_windows import LoadWindow, Trend


def window(
    load: float, share: float, *, counted: float = 1000.0, size: float = 1.0, trend: Trend = Trend.SETTLED
) -> LoadWindow:
    missed = round(share * counted)
    events = (size,) * round(missed / size)
    return LoadWindow(
        load=load, begin=0.0, seconds=60.0, counted=counted, missed=missed, events=events, trend=trend, in_flight=load,
        reached=load, latency=0.01,
    )  # fmt: skip


def posterior(*windows: LoadWindow, allowed: float = 0.01, concurrency: bool = True) -> LoadPosterior:
    of = partial(load_posterior, windows, allowed=allowed, concurrency=concurrency)
    coarse = of(loads=possible_loads(0.1, 1000.0))
    return of(loads=possible_loads(0.1, 1000.0, near=coarse))


def test_the_answer_lies_between_a_load_that_was_kept_and_one_that_was_not() -> None:
    found = posterior(window(10.0, 0.0), window(12.0, 0.5))
    low, high = found.interval
    assert 9.0 < low < high < 12.0
    assert found.below(12.0) > 0.99


def test_a_monotone_curve_may_rise_slowly_beyond_the_answer() -> None:
    shares = ((10.0, 0.001), (12.0, 0.005), (14.0, 0.017), (30.0, 0.03))
    slow = [window(load, share, counted=10_000.0) for load, share in shares]
    found = monotone_posterior(slow, allowed=0.01, loads=possible_loads(0.1, 1000.0))
    low, high = found.interval
    assert 11.4 < low < high < 14.1


def test_an_open_loop_needs_more_time_for_the_same_interval() -> None:
    pair = window(10.0, 0.0), window(12.0, 0.5)
    closed, short, long = posterior(*pair), posterior(*pair, concurrency=False), posterior(*6 * pair, concurrency=False)
    widths = [each.interval[1] / each.interval[0] for each in (closed, long, short)]
    assert widths == sorted(widths)


def test_more_windows_make_the_interval_narrower() -> None:
    few = posterior(window(10.0, 0.0), window(12.0, 0.3))
    many = posterior(
        *[window(load, share) for load, share in ((10.0, 0.001), (10.5, 0.004), (11.5, 0.05), (12.0, 0.15))]
    )
    assert many.interval[1] / many.interval[0] < few.interval[1] / few.interval[0]


def test_samples_that_missed_together_are_weaker_evidence_than_single_ones() -> None:
    loads = ((10.0, 0.002), (11.0, 0.012), (12.0, 0.1))
    single, together = (posterior(*[window(load, share, size=size) for load, share in loads]) for size in (1.0, 12.0))
    assert together.interval[1] / together.interval[0] > single.interval[1] / single.interval[0]


def test_a_load_at_which_the_queue_still_rises_does_not_prove_that_it_is_kept() -> None:
    settled, rising = (posterior(window(20.0, 0.0, trend=trend)) for trend in (Trend.SETTLED, Trend.RISING))
    assert settled.below(10.0) < 0.01 < rising.below(10.0)


def test_the_backlog_of_the_load_before_does_not_prove_that_a_load_is_missed() -> None:
    settled, falling = (posterior(window(20.0, 0.5, trend=trend)) for trend in (Trend.SETTLED, Trend.FALLING))
    assert settled.below(30.0) > 0.99 > falling.below(30.0)


def test_the_least_of_two_answers_is_below_both() -> None:
    pairs = ((window(10.0, 0.0), window(12.0, 0.5)), (window(30.0, 0.0), window(36.0, 0.5)))
    lower, higher = (load_posterior(pair, allowed=0.01, loads=np.geomspace(1.0, 100.0, 2000)) for pair in pairs)
    assert least_of([lower, higher]).interval == pytest.approx(lower.interval, rel=0.01)
    both = least_of([lower, lower])
    assert both.quantile(0.5) < lower.quantile(0.5)
    assert both.weights.sum() == pytest.approx(1.0)


def test_a_jump_between_two_loads_close_together_is_found_between_them() -> None:
    windows = [window(10.0, 0.0), window(10.02, 1.0), *[window(load, 0.0) for load in (8.0, 9.0, 9.5, 9.9)]]
    coarse, tried = possible_loads(0.1, 1000.0), [each.load for each in windows]
    assert not ((coarse > 10.0) & (coarse < 10.02)).any()
    coarse = possible_loads(0.1, 1000.0, tried=tried)
    of = partial(load_posterior, windows, allowed=0.01, concurrency=True)
    found = of(loads=possible_loads(0.1, 1000.0, tried=tried, near=of(loads=coarse)))
    assert found.jump > 0.9
    assert 9.99 < found.interval[0] < found.interval[1] < 10.03
    assert 10.0 <= found.quantile(0.5) <= 10.02


def test_shares_that_rise_step_by_step_are_no_jump() -> None:
    found = posterior(*[window(load, share) for load, share in ((9.0, 0.002), (10.0, 0.01), (10.5, 0.03), (11.5, 0.1))])
    assert found.jump < 0.05


def test_loads_that_were_kept_often_exclude_answers_far_below_them_though_loads_near_the_answer_disagree() -> None:
    kept = [window(load, 0.0, counted=120.0, size=24.0) for load in np.geomspace(2.5, 12.5, 25)]
    noisy = [window(load, share, counted=120.0, size=24.0) for load, share in ((13.0, 0.4), (13.4, 0.0), (13.8, 0.6))]
    low, high = posterior(*kept, *noisy, window(16.0, 1.0, counted=120.0), allowed=0.05).interval
    assert 8.0 < low < 13.8
    assert high < 16.0


def test_the_interval_contains_the_answer_of_logistic_curves_nearly_always() -> None:
    random, covered = Random(5), 0
    for _ in range(60):
        answer, slope = 8.0 * 2 ** random.uniform(-1, 1), 30.0 * 2 ** random.gauss(0, 0.7)
        windows = []
        for step in range(10):
            load = answer * (1 + 0.03 * (step - 5))
            logit = math.log(0.05 / 0.95) + slope * math.log(load / answer)
            missed = np.random.default_rng(random.randrange(1 << 30)).binomial(400, 1 / (1 + math.exp(-logit)))
            windows.append(window(load, missed / 400, counted=400.0))
        low, high = posterior(*windows, allowed=0.05).interval
        covered += low <= answer <= high
    assert covered >= 55
