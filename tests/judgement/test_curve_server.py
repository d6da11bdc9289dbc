"""Synthetic servers: their largest load is what long runs of them show, and a seed draws one server."""

from __future__ import annotations

import numpy as np
import pytest

from tests.judgement.curve_server import CURVES, Curve, CurveServer, draw_curve


def missed(curve: Curve, load: float, *, noise: float, seconds: float = 2000.0) -> float:
    """The share of requests beyond the limit when one load is kept."""
    server = CurveServer(curve, noise=noise, seed=1)
    server.keep(load, seconds)
    evidence = server.evidence([], [curve.objective])
    return float(evidence.missed[0].sum() / evidence.counted[0].sum())


@pytest.mark.parametrize("kind", CURVES)
@pytest.mark.parametrize("number", [3, 5])
def test_exactly_the_allowed_share_misses_the_limit_at_the_largest_load(kind: str, number: int) -> None:
    curve = draw_curve(kind, number)
    allowed = 1 - curve.share
    at = missed(curve, curve.largest, noise=0.03)
    if kind == "cliff":
        assert at < allowed
        assert missed(curve, 1.001 * curve.largest, noise=0.03) > 5 * allowed
    else:
        assert at == pytest.approx(allowed, rel=0.35)
        assert missed(curve, 1.5 * curve.largest, noise=0.03) > at


@pytest.mark.parametrize("kind", CURVES)
def test_smaller_loads_are_within_the_objective(kind: str) -> None:
    curves = [draw_curve(kind, number) for number in range(20)]
    for curve in curves:
        relative = [curve.relative(share * curve.largest) for share in np.linspace(0.01, 0.99, 50)]
        assert max(relative) < 1, curve
        assert curve.relative(1.01 * curve.largest) > 1, curve


def test_a_seed_draws_one_server_of_each_number() -> None:
    assert draw_curve("power", 1) == draw_curve("power", 1)
    assert draw_curve("power", 1) != draw_curve("power", 3)
    assert draw_curve("power", 2).concurrency
    assert draw_curve("power", 2).true == round(draw_curve("power", 2).true)


def test_a_closed_loop_has_as_many_requests_in_flight_as_asked() -> None:
    curve = draw_curve("linear", 2)
    server = CurveServer(curve, noise=0.0, seed=1)
    for load in (20, 5, 12):
        server.keep(load, 100.0)
        evidence = server.evidence([], [curve.objective])
        assert int(np.isnan(evidence.done).sum()) == load


def test_a_request_in_flight_counts_once_its_limit_has_passed() -> None:
    curve = draw_curve("cliff", 1)
    server = CurveServer(curve, noise=0.0, seed=1)
    server.keep(3 * curve.largest, 5 * curve.limit)
    evidence = server.evidence([], [curve.objective])
    flying = np.isnan(evidence.done)
    old = server.now - evidence.due > curve.limit
    assert (flying & old).any()
    assert (evidence.counted[0][flying] == old[flying]).all()
