"""How likely levels of a percentile are, given latencies that are known, or known to be no smaller."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.core.arrays import FloatArray
from servetop.run.search.latency_levels import LatencySamples, LevelDeviance, event_size, level_deviance
from servetop.run.search.level_chain import LEVELS

SURE = 3.84
"""Deviance of the ends of an interval of 95 %."""


def samples(
    levels: FloatArray, *, open_: int = 0, seconds: float = 60.0, due: FloatArray | None = None
) -> LatencySamples:
    """Latencies that are spread over a minute; the last ones are of requests in flight."""
    in_flight = np.arange(levels.size) >= levels.size - open_
    at = np.linspace(0, seconds, levels.size, endpoint=False) if due is None else due
    return LatencySamples(
        due=at, levels=levels, longest=np.where(in_flight, levels, 9.0), begin=0.0, end=seconds, latency=0.5
    )


def interval(of: LevelDeviance) -> tuple[float, float]:
    """The levels that are not excluded."""
    possible = LEVELS[of.least < SURE]
    return float(possible[0]), float(possible[-1])


@pytest.mark.parametrize("allowed", [0.1, 0.05, 0.01])
def test_the_interval_contains_the_percentile_of_any_distribution(allowed: float) -> None:
    random = np.random.default_rng(7)
    for draw in (random.normal, random.gumbel, random.laplace):
        shift = float(np.quantile(0.1 * draw(size=400_000), 1 - allowed))
        inside = 0
        for _ in range(40):
            low, high = interval(level_deviance(samples(0.1 * draw(size=1000) - shift), allowed=allowed, size=1.0))
            inside += low <= LEVELS[np.abs(LEVELS).argmin()] <= high
        assert inside >= 34


def test_more_samples_and_smaller_events_say_more() -> None:
    levels = 0.2 * np.random.default_rng(1).normal(size=2000)
    few, many = (level_deviance(samples(levels[:size]), allowed=0.1, size=1.0) for size in (200, 2000))
    together = level_deviance(samples(levels), allowed=0.1, size=5.0)
    widths = [high - low for low, high in map(interval, (many, together, few))]
    assert widths == sorted(widths)


def beyond_limit(of: LevelDeviance) -> float:
    """Probability that the percentile is beyond the limit, if all levels were as likely before."""
    likelihood = np.exp(-of.mean / 2) * np.gradient(LEVELS)
    return float(likelihood[LEVELS > 0].sum() / likelihood.sum())


def test_a_percentile_beyond_all_samples_is_as_unlikely_as_their_number_tells() -> None:
    levels = -0.5 + 0.1 * np.random.default_rng(4).normal(size=2000)
    few, some, many = (
        beyond_limit(level_deviance(samples(levels[:size]), allowed=0.01, size=1.0)) for size in (20, 200, 2000)
    )
    assert few > 0.05 > some > 0.005 > 1e-6 > many


def test_requests_in_flight_count_only_where_they_could_be_beyond_by_now() -> None:
    ended, sent_just_now = np.full(90, -0.5), np.full(10, -1.5)
    without = level_deviance(samples(ended), allowed=0.05, size=1.0)
    waiting = level_deviance(samples(np.concatenate((ended, sent_just_now)), open_=10), allowed=0.05, size=1.0)
    assert beyond_limit(waiting) == pytest.approx(beyond_limit(without), abs=0.02)
    overdue = level_deviance(samples(np.concatenate((ended, -sent_just_now)), open_=10), allowed=0.05, size=1.0)
    assert beyond_limit(overdue) > 0.5 > beyond_limit(without)


def test_the_mean_of_a_level_is_never_better_than_its_best_fit() -> None:
    found = level_deviance(samples(0.2 * np.random.default_rng(2).normal(size=500)), allowed=0.1, size=1.0)
    assert (found.mean >= found.least - 1e-9).all()


def test_misses_that_come_together_are_events() -> None:
    random = np.random.default_rng(3)
    alone = [samples(random.normal(size=1200)) for _ in range(8)]
    level = np.repeat(random.normal(size=(8, 24)), 50, axis=1)
    together = [samples(each + 0.3 * random.normal(size=1200)) for each in level]
    assert event_size(alone, allowed=0.1) < 1.4
    assert event_size(together, allowed=0.1) > 5
    assert event_size([], allowed=0.1) == pytest.approx(1.3)
