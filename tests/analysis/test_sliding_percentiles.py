"""Percentiles of many windows at once equal those of each window's own histogram."""

import math

from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.series.sliding_percentiles import neighbouring_percentiles, sliding_percentiles
from servetop.core.histogram import LogHistogram

TICKS = st.lists(st.lists(st.floats(1e-8, 1e6), max_size=5), min_size=1, max_size=20)
POSITIONS = st.integers(0, 20)


@given(TICKS, st.lists(st.tuples(POSITIONS, POSITIONS), max_size=6))
def test_windows_have_the_percentiles_of_the_sum_of_their_ticks(
    values: list[list[float]], drawn: list[tuple[int, int]]
) -> None:
    ticks = [LogHistogram.of(each) for each in values]
    windows = [(min(window), min(max(window), len(ticks))) for window in drawn]
    windows = [(min(start, stop), stop) for start, stop in windows]
    found = sliding_percentiles(windows, lambda start, stop: ticks[start:stop])
    expected = [LogHistogram.merged(ticks[start:stop]).percentiles(50, 90, 99) for start, stop in windows]
    assert [[None if math.isnan(each) else each for each in row] for row in found] == [
        [None if math.isnan(each) else each for each in row] for row in expected
    ]


@given(TICKS, st.integers(1, 8), st.integers(1, 8))
def test_windows_beside_each_other_have_the_same_with_and_without_a_measurement(
    values: list[list[float]], count: int, length: int
) -> None:
    ticks = [LogHistogram.of(each) for each in values]
    windows = [(start, start + length) for start in range(count)]
    found = neighbouring_percentiles(windows, lambda start, stop: ticks[start:stop])
    assert repr(found) == repr(sliding_percentiles(windows, lambda start, stop: ticks[start:stop]))


def test_a_tick_in_several_windows_is_read_once_and_one_in_none_is_not_read() -> None:
    read: list[int] = []

    def histograms(start: int, stop: int) -> list[LogHistogram]:
        read.extend(range(start, stop))
        return [LogHistogram.of([0.1 * each + 0.1]) for each in range(start, stop)]

    sliding_percentiles([(0, 4), (1, 5), (2, 6), (9, 12)], histograms)
    assert sorted(read) == [0, 1, 2, 3, 4, 5, 9, 10, 11]


def test_without_windows_there_are_no_percentiles() -> None:
    assert sliding_percentiles([], lambda *_: []) == []
