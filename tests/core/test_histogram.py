"""A LogHistogram merges by addition and answers percentiles within 1 %."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.histogram import EMPTY, LogHistogram, bucket_value, bucket_values

durations = st.lists(st.floats(min_value=1e-6, max_value=1e4), min_size=1, max_size=200)


@given(durations, st.sampled_from([0.0, 50.0, 90.0, 99.0, 100.0]))
def test_every_percentile_is_within_one_percent_of_the_exact_one(values: list[float], q: float) -> None:
    exact = float(np.percentile(values, q))
    assert abs(LogHistogram.of(values).percentile(q) - exact) <= 0.0101 * exact


@given(durations)
def test_several_percentiles_are_each_of_them(values: list[float]) -> None:
    histogram = LogHistogram.of(values)
    assert histogram.percentiles(0, 50, 99.5, 100) == tuple(histogram.percentile(q) for q in (0, 50, 99.5, 100))
    assert histogram.percentiles(0, 100) == (bucket_value(histogram.buckets[0]), bucket_value(histogram.buckets[-1]))
    assert bucket_values(histogram.buckets).tolist() == [bucket_value(each) for each in histogram.buckets]
    assert len(EMPTY.percentiles(50, 99)) == 2


@given(durations, durations)
def test_merging_histograms_equals_counting_all_values_at_once(left: list[float], right: list[float]) -> None:
    assert LogHistogram.merged([LogHistogram.of(left), EMPTY, LogHistogram.of(right)]) == LogHistogram.of(left + right)


def test_weights_count_a_value_several_times() -> None:
    weighted = LogHistogram.of([0.010, 0.020], weights=[3, 1])
    assert weighted == LogHistogram.of([0.010, 0.010, 0.010, 0.020])
    assert weighted.count == 4
    assert weighted.mean == 0.0125


def test_zero_and_negative_durations_are_counted_in_the_lowest_bucket() -> None:
    histogram = LogHistogram.of([0.0, -1e-9])
    assert histogram.count == 2
    assert histogram.percentile(99) < 1.1e-7


def test_an_empty_histogram_has_no_percentile() -> None:
    assert np.isnan(EMPTY.percentile(50))
    assert np.isnan(EMPTY.mean)
