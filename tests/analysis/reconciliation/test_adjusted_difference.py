"""A difference of means is attributed to what the requests differ by, as learnt within the runs."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.analysis.reconciliation.adjusted_difference import MeasuredSample, adjusted_difference


def sample(seed: int, *, longer: float = 0.0, slower: float = 0.0, count: int = 400) -> MeasuredSample:
    """Values of 2 + 0.5 x + noise, with x about 10."""
    random = np.random.default_rng(seed)
    x = random.normal(10 + longer, 3, count)
    values = 2 + 0.5 * x + slower + random.normal(0, 0.2, count)
    return MeasuredSample(values=values, weights=np.ones(count), terms={"x": x[:, None]})


def test_the_part_of_a_term_is_its_slope_times_its_difference() -> None:
    one, other = sample(1), sample(2, longer=4.0, slower=0.3)
    found = adjusted_difference(one, other)
    shift = other.terms["x"].mean() - one.terms["x"].mean()
    assert found.parts["x"].effect == pytest.approx(0.5 * shift, rel=0.02)
    assert found.rest.effect == pytest.approx(0.3, abs=0.05)
    assert found.rest.low < 0.3 < found.rest.high
    assert found.parts["x"].effect + found.rest.effect == pytest.approx(other.mean - one.mean)


def test_intervals_are_repeatable_and_as_wide_as_the_noise() -> None:
    first, second = (adjusted_difference(sample(1), sample(2)) for _ in range(2))
    assert first == second
    half = (first.rest.high - first.rest.low) / 2
    assert half == pytest.approx(1.96 * 0.2 * np.sqrt(2 / 400), rel=0.4)


def test_a_term_without_a_common_value_is_left_out_with_the_reason() -> None:
    found = adjusted_difference(sample(1), sample(2, longer=100.0))
    assert found.parts == {}
    assert "share no value" in found.inseparable["x"]
    assert found.rest.effect == pytest.approx(50.0, rel=0.02)


def test_a_term_that_never_varies_explains_nothing() -> None:
    one, other = (
        MeasuredSample(values=each.values, weights=each.weights, terms={"x": np.full((400, 1), 128.3)})
        for each in (sample(1), sample(2))
    )
    found = adjusted_difference(one, other)
    assert found.parts["x"].effect == 0.0
    assert found.rest.effect == pytest.approx(other.mean - one.mean)


def test_weights_count_as_repetitions() -> None:
    single, other = sample(1, count=200), sample(2, count=200)
    doubled = MeasuredSample(values=single.values, weights=np.full(200, 2.0), terms=single.terms)
    found, expected = adjusted_difference(doubled, other), adjusted_difference(single, other)
    assert found.rest.effect == pytest.approx(expected.rest.effect, abs=0.01)
