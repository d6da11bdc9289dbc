"""How well curves fit what loads showed: steep ones, plateaus, jumps, and any that never fall."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from servetop.run.search.load_curves import (
    SLOPES,
    CurveDeviance,
    ShownLoads,
    jump_deviance,
    monotone_deviance,
    rising_deviances,
)

ALLOWED = 0.05


def shown(*loads: tuple[float, float], trials: float = 100.0, requests: float = math.inf) -> ShownLoads:
    at, shares = np.array(loads).reshape(-1, 2).T
    return ShownLoads(
        at=at, events=shares * trials, trials=np.full(at.shape, trials), requests=np.full(at.shape, requests)
    )


def rising(loads: ShownLoads, *answers: float, plateau: float | None = None) -> CurveDeviance:
    (found,) = rising_deviances(loads, np.array(answers), allowed=ALLOWED, plateaus=(plateau,))
    return found


def test_nothing_seen_fits_every_answer() -> None:
    for found in (rising(shown(), 1.0, 2.0), jump_deviance(shown(), np.array([1.0, 2.0]), allowed=ALLOWED)):
        assert not found.curve.any()
        assert not found.monotone.any()


def test_the_curve_that_the_shares_follow_fits_perfectly() -> None:
    logit = np.log(ALLOWED / (1 - ALLOWED)) + SLOPES[9] * np.log(np.array([0.95, 1.0, 1.05]))
    found = rising(shown(*zip((9.5, 10.0, 10.5), 1 / (1 + np.exp(-logit)), strict=True)), 10.0)
    assert int(found.curve[0].argmin()) == 9
    assert found.curve[0, 9] == pytest.approx(0.0, abs=1e-6)


def test_any_curve_that_never_falls_fits_perfectly_if_it_crosses_the_share_at_the_answer() -> None:
    loads = shown((8.0, 0.01), (10.0, 0.04), (12.0, 0.06), (40.0, 0.07))
    below, at, above = monotone_deviance(loads, np.array([7.0, 11.0, 20.0]), allowed=ALLOWED)
    assert at == pytest.approx(0.0, abs=1e-9)
    assert below > 1.0
    assert above > 0.1


def test_noise_at_some_loads_counts_for_an_answer_far_from_them_too() -> None:
    noisy = [(10.0, 0.0), (10.1, 0.6), (10.2, 0.0), (10.3, 0.5)]
    calm, found = (rising(shown(*each), 10.0, 2.0, plateau=0.0).monotone for each in ([(10.0, 0.0)], noisy))
    assert calm[1] - calm[0] > 10.0
    assert found[0] > 50.0
    assert found[1] > found[0]


def test_loads_that_were_kept_exclude_an_answer_below_them_even_above_a_plateau() -> None:
    once, often = (rising(shown(*((10.0, 0.0),) * count, trials=5.0), 2.0, plateau=0.0) for count in (1, 30))
    assert often.monotone[0] == pytest.approx(30 * once.monotone[0])
    assert often.monotone[0] > 30.0


def test_a_curve_with_a_plateau_stays_little_above_the_allowed_share() -> None:
    flat = shown((10.0, 0.0), (15.0, 0.1), (20.0, 0.1), (40.0, 0.1))
    without, beyond = (rising(flat, 12.0, plateau=plateau).monotone[0] for plateau in (None, 0.0))
    assert beyond == pytest.approx(0.0, abs=1e-6)
    assert without > 100.0


def test_a_jump_is_between_the_last_load_that_was_kept_and_the_first_that_was_not() -> None:
    loads, answers = shown((9.0, 0.001), (9.9, 0.002), (10.1, 1.0)), np.array([9.5, 9.95, 10.05, 10.2])
    found = jump_deviance(loads, answers, allowed=ALLOWED).curve[:, 0]
    assert max(found[1], found[2]) < 0.1
    assert min(found[0], found[3]) > 100.0
    assert rising(loads, *answers).curve.min() > 3.0


def test_a_share_that_rises_step_by_step_is_no_jump() -> None:
    loads, answers = shown((9.0, 0.02), (10.0, 0.05), (11.0, 0.15), (12.0, 0.35)), np.geomspace(8.0, 14.0, 100)
    assert jump_deviance(loads, answers, allowed=ALLOWED).curve.min() > rising(loads, *answers).curve.min() + 10.0


def test_a_plateau_that_is_not_flat_misses_ever_more_far_above_the_answer() -> None:
    flat = shown((10.0, 0.0), (13.0, 0.13), (40.0, 0.13))
    level, slanted = (rising(flat, 12.0, plateau=slope).monotone[0] for slope in (0.0, 1.0))
    assert level == pytest.approx(0.0, abs=1e-6)
    assert slanted > 4.0
    assert rising(shown((10.0, 0.0), (13.0, 0.13)), 12.0, plateau=1.0).monotone[0] == pytest.approx(0.0, abs=1e-6)


def test_few_requests_of_an_open_loop_tell_little_of_loads_near_theirs_and_more_of_others() -> None:
    kept = shown((10.0, 0.0), trials=10.0)
    long, short = (rising(replace(kept, requests=np.array([each])), 3.0, 9.0) for each in (1000.0, 15.0))
    assert short.monotone[0] > 0.9 * long.monotone[0]
    assert short.monotone[1] < 0.1 * long.monotone[1]
    assert short.curve[1, -1] < 0.1 * long.curve[1, -1]
    assert long.monotone[1] == pytest.approx(rising(kept, 9.0).monotone[0])


def test_a_load_that_missed_counts_as_one_event_however_few_requests_it_had() -> None:
    found, one = shown((10.0, 1.0), requests=5.0), shown((10.0, 1.0), trials=1.0)
    assert rising(found, 11.0).monotone[0] == pytest.approx(rising(one, 11.0).monotone[0])
    jumps = [jump_deviance(each, np.array([11.0]), allowed=ALLOWED).monotone[0] for each in (found, one)]
    assert jumps[0] == pytest.approx(jumps[1])
