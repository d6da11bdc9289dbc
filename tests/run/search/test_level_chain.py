"""Curves of levels over the load: what evidence at some loads says of those between and beyond them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from servetop.core.arrays import FloatArray
from servetop.run.search.level_chain import LEVELS, Curves, curves

DISTANCE, LOADS = 0.01, 101
NARROW = 0.02
"""Standard error of a level that was measured."""


def found(measured: Mapping[int, float], *, error: float = NARROW) -> Curves:
    """The curves through levels that were measured at some of the loads."""
    deviances = np.zeros((LOADS, LEVELS.size))
    for place, level in measured.items():
        deviances[place] = ((LEVELS - level) / error) ** 2
    return curves([DISTANCE] * (LOADS - 1), deviances)


def expected(of: Curves) -> FloatArray:
    """Mean level at each load."""
    return np.asarray(of.levels @ LEVELS)


def test_levels_of_a_load_are_a_distribution_and_larger_loads_are_never_more_likely_within() -> None:
    curve = found({20: -0.3, 80: 0.2})
    assert curve.levels.sum(axis=1) == pytest.approx(np.ones(LOADS))
    assert (np.diff(curve.within) <= 1e-12).all()


def test_a_level_between_two_that_were_measured_lies_between_them() -> None:
    means = expected(found({20: -0.4, 60: 0.0}))
    assert means[40] == pytest.approx(-0.2, abs=0.05)
    assert means[20] < means[30] < means[50] < means[60]


def test_a_line_goes_on_beyond_the_last_load() -> None:
    measured = {place: 0.8 * (place - 80) * DISTANCE for place in (0, 15, 30, 45, 60)}
    curve = found(measured, error=0.004)
    assert curve.within[70] > 0.9 > 0.3 > curve.within[92]
    assert 0.3 < curve.within[80] < 0.7


def test_a_plateau_says_less_than_a_line() -> None:
    line = found({place: 0.5 * (place - 80) * DISTANCE for place in (0, 30, 60)})
    flat = found(dict.fromkeys((0, 30, 60), -0.02))
    widths = [float((each.within * (1 - each.within)).sum()) for each in (line, flat)]
    assert widths[0] < widths[1]


def test_a_cliff_is_a_jump_and_a_slope_is_none() -> None:
    cliff = found({0: -0.8, 20: -0.78, 38: -0.77, 42: 0.9, 60: 0.92})
    slope = found({place: 0.8 * (place - 50) * DISTANCE for place in range(0, 100, 10)})
    assert cliff.jump > 0.95
    assert slope.jump < 0.05


def test_what_fits_no_curve_leaves_no_load_without_a_probability() -> None:
    curve = found({50: -0.5, 51: 1.2, 52: -0.5, 53: 1.2}, error=0.01)
    assert np.isfinite(curve.levels).all()
    assert curve.levels.sum(axis=1) == pytest.approx(np.ones(LOADS))
