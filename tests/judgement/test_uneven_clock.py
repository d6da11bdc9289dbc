"""The clock of an engine whose speed varies: exact in both directions, and even on average."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.judgement.searched_servers import draw_case
from tests.judgement.uneven_clock import BLOCK, UnevenClock


def test_times_convert_back_and_unknown_ones_stay_unknown() -> None:
    clock = UnevenClock(0.1, seed=1)
    walls = np.array([0.0, 3.0, 5.0, 1234.5, 20_000.0])
    engine = np.array([clock.engine_time(each) for each in walls])
    assert clock.wall_times(engine) == pytest.approx(walls)
    assert np.isnan(clock.wall_times(np.array([[1.0, math.nan]]))).tolist() == [[False, True]]


def test_factors_of_blocks_have_the_noise_that_was_drawn() -> None:
    clock = UnevenClock(0.03, seed=2)
    edges = np.array([clock.engine_time(BLOCK * each) for each in range(5001)])
    factors = np.log(BLOCK / np.diff(edges))
    assert factors.mean() == pytest.approx(0.0, abs=0.002)
    assert factors.std() == pytest.approx(0.03, rel=0.05)


def test_without_noise_both_times_are_equal() -> None:
    clock = UnevenClock(0.0, seed=3)
    times = np.array([0.1, 7.7, math.nan])
    assert clock.engine_time(7.7) == 7.7
    assert clock.wall_times(times) is times


def test_latencies_of_an_uneven_engine_spread_further_about_the_same_mean() -> None:
    case = draw_case("decode-bound", 1)
    found = []
    for noise in (0.0, 0.3):
        server = replace(case, noise=noise).server(3)
        server.keep(5.0, 600.0)
        found.append(server.values(case.objective))
    even, uneven = found
    assert even.std() < uneven.std() / 3
    assert uneven.mean() == pytest.approx(even.mean(), rel=0.15)
