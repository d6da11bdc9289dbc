"""Monotone fits of shares on either side of a possible answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.run.search.monotone_fit import monotone_fits


def test_shares_that_rise_are_their_own_fit() -> None:
    fits = monotone_fits(np.array([0.0, 1.0, 4.0]), np.array([10.0, 10.0, 10.0]))
    assert fits.shape == (4, 3)
    assert fits == pytest.approx(np.tile([0.0, 0.1, 0.4], (4, 1)))


def test_a_larger_load_that_missed_less_has_one_share_with_the_smaller_one_by_their_trials() -> None:
    fits = monotone_fits(np.array([6.0, 0.0]), np.array([10.0, 20.0]))
    assert fits[0] == pytest.approx([0.2, 0.2])
    assert fits[2] == pytest.approx([0.2, 0.2])


def test_loads_on_either_side_of_the_answer_are_fitted_on_their_own() -> None:
    fits = monotone_fits(np.array([6.0, 0.0, 5.0, 1.0]), np.full(4, 10.0))
    assert fits[1] == pytest.approx([0.6, 0.0, 0.3, 0.3])
    assert fits[2] == pytest.approx([0.3, 0.3, 0.3, 0.3])
    assert fits[3] == pytest.approx([0.3, 0.3, 0.5, 0.1])


def test_no_load_has_no_fit() -> None:
    assert monotone_fits(np.zeros(0), np.zeros(0)).shape == (1, 0)


LOADS = st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.5, 100.0)), min_size=1, max_size=12)


@given(LOADS)
def test_each_side_never_falls_and_keeps_the_number_of_its_events(loads: list[tuple[float, float]]) -> None:
    shares, trials = (np.array(each) for each in zip(*loads, strict=True))
    for below, fit in enumerate(monotone_fits(shares * trials, trials)):
        for side in (slice(None, below), slice(below, None)):
            assert (np.diff(fit[side]) >= -1e-9).all()
            assert (fit[side] * trials[side]).sum() == pytest.approx((shares * trials)[side].sum(), abs=1e-6)
