"""Gaps between tokens, and their summary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.analysis.statistics.percentiles import Distribution
from servetop.simulator.predict.cell_result import predicted_latency
from servetop.simulator.predict.prediction import PredictedLatency
from servetop.simulator.predict.usage_integrals import UsageIntegrals

MANY = settings(max_examples=200, deadline=None)


runs = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.01), st.integers(1, 20), st.integers(1, 9))


@given(st.lists(runs, max_size=12))
@MANY
def test_the_gaps_of_a_run_are_those_of_its_steps(table: list[tuple[float, float, int, int]]) -> None:
    usage = UsageIntegrals()
    usage.gaps = table
    gaps = [
        first + growth * step for first, growth, count, weight in table for step in range(count) for _ in range(weight)
    ]
    found = usage.gap_distribution()
    assert found.count == len(gaps)
    if gaps:
        assert found.percentile(50) == pytest.approx(np.percentile(gaps, 50))
        assert predicted_latency(found).mean == pytest.approx(1e3 * np.mean(gaps))


def test_no_samples_give_zeros() -> None:
    assert predicted_latency(Distribution.of(np.empty(0))) == PredictedLatency()
