"""Fixed buckets of a log-bucket histogram: counts by bound, exact in count and sum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.histogram import EMPTY, LogHistogram
from servetop.run.exporter.bucket_counts import bucket_counts
from servetop.run.exporter.metric_registry import METRICS, TOKEN_BOUNDS

BOUNDS = (0.01, 0.1, 1.0)


def test_a_value_equal_to_a_bound_counts_below_it() -> None:
    counted = bucket_counts(LogHistogram.of([0.01, 0.1, 1.0]), BOUNDS)
    assert counted.counts == [1, 2, 3, 3]
    assert counted.total == pytest.approx(1.11)


def test_every_declared_bound_is_exact_for_values_equal_to_it() -> None:
    for bounds in {metric.bounds for metric in METRICS if metric.bounds}:
        assert bucket_counts(LogHistogram.of(bounds), bounds).counts == [*range(1, len(bounds) + 1), len(bounds)]


def test_nothing_is_counted_of_an_empty_histogram() -> None:
    counted = bucket_counts(EMPTY, BOUNDS)
    assert (list(counted.counts), counted.total) == ([0, 0, 0, 0], 0.0)


@given(st.lists(st.floats(1e-4, 1e5), min_size=1, max_size=200))
def test_a_count_is_between_those_of_the_bound_and_of_two_percent_above(values: list[float]) -> None:
    counted = bucket_counts(LogHistogram.of(values), TOKEN_BOUNDS)
    for bound, count in zip(TOKEN_BOUNDS, counted.counts, strict=False):
        assert sum(value <= bound for value in values) <= count <= sum(value <= bound * 1.0203 for value in values)
    assert counted.counts[-1] == len(values)
    assert counted.total == pytest.approx(sum(values))
