"""The posterior by latencies, in closed loops on synthetic curves, beside the one by missed samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servetop.run.search.level_posterior import has_latencies, level_posterior
from servetop.run.search.load_posterior import LoadPosterior, load_posterior, possible_loads
from servetop.run.search.load_windows import LoadWindow, windows
from tests.judgement.curve_server import Curve, CurveServer

ALLOWED = 0.1
CURVE = Curve(
    kind="linear", limit=1.0, share=1 - ALLOWED, largest=40.3, concurrency=True, spread=0.15, start=0.4, bend=0.0
)  # fmt: skip


def kept(curve: Curve, *loads: float, seconds: float = 30.0) -> list[LoadWindow]:
    """What loads show that are kept one after the other."""
    server = CurveServer(curve, noise=0.01, seed=3)
    probes = [server.keep(load, seconds) for load in loads]
    return windows(server.evidence(probes, [curve.objective]), 0, concurrency=True)


def posteriors(found: list[LoadWindow]) -> tuple[LoadPosterior, LoadPosterior]:
    """By missed samples, and by latencies."""
    tried = [each.load for each in found]
    coarse = load_posterior(found, allowed=ALLOWED, loads=possible_loads(1.0, 1000.0, tried=tried), concurrency=True)
    loads = possible_loads(1.0, 1000.0, tried=tried, near=coarse)
    missed = load_posterior(found, allowed=ALLOWED, loads=loads, concurrency=True)
    return missed, level_posterior(found, missed, allowed=ALLOWED)


def width(of: LoadPosterior) -> float:
    low, high = of.interval
    return high / low - 1


def test_latencies_tell_more_than_missed_samples() -> None:
    missed, level = posteriors(kept(CURVE, 10, 20, 30, 50, 35, 45))
    low, high = level.interval
    assert low < CURVE.largest < high
    assert width(level) < width(missed) / 2
    assert level.weights.sum() == pytest.approx(1.0)


def test_a_line_leads_from_loads_within_the_limit_to_the_answer() -> None:
    missed, level = posteriors(kept(CURVE, 15, 25, 35, 80))
    assert abs(level.quantile(0.5) / CURVE.largest - 1) < 0.1
    assert width(level) < width(missed)


def test_a_cliff_is_a_jump_between_two_loads() -> None:
    cliff = replace(CURVE, kind="cliff", bend=3.0)
    _, level = posteriors(kept(cliff, 10, 20, 30, 50, 38, 42))
    low, high = level.interval
    assert 37.4 < low < cliff.largest < high < 42.6
    assert level.jump > 0.5


def test_the_answer_stays_within_what_missed_samples_allow() -> None:
    missed, level = posteriors(kept(CURVE, 10, 20, 30, 50))
    outside = (level.loads < missed.quantile(0.0005)) | (level.loads > missed.quantile(0.9995))
    assert level.weights[outside].sum() < 0.01


def test_windows_without_latencies_have_none() -> None:
    found = kept(CURVE, 20, 60)
    assert has_latencies(found)
    assert not has_latencies([replace(each, samples=None) for each in found])
    assert not has_latencies([])


def test_the_same_windows_in_another_order_give_the_same_answer() -> None:
    found = kept(CURVE, 20, 30, 50, 40)
    first, second = (posteriors(each)[1] for each in (found, found[::-1]))
    assert np.allclose(first.weights, second.weights)


def test_no_line_leads_beyond_the_loads_while_none_was_too_high() -> None:
    missed, level = posteriors(kept(CURVE, 5, 10, 20))
    assert level is missed


def test_the_interval_is_wide_enough_for_the_difference_between_visits_and_steady_runs() -> None:
    found = kept(replace(CURVE, spread=0.001), 38, 42, 39, 41, 38, 42, 39, 41, seconds=300.0)
    _, level = posteriors(found)
    assert width(level) > 0.04
