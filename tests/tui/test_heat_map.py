"""Heat maps: each request is in its cell, and none is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.histogram import EMPTY, LogHistogram
from servetop.tui.drawing.heat_map import HeatMap, heat_map
from servetop.tui.drawing.scale import log_limits

SECONDS = np.arange(1.0, 5.0)
"""Ends of four bins of a second each."""


def test_a_latency_lands_in_its_row_and_its_column() -> None:
    bins = [LogHistogram.of([0.012]), EMPTY, LogHistogram.of([0.9, 0.9, 0.9]), EMPTY]
    drawn = heat_map(bins, SECONDS, window=(0.0, 4.0), shape=(2, 4))
    assert drawn is not None
    assert [drawn.low, drawn.high] == pytest.approx([0.01, 1.0])
    assert drawn.counts.tolist() == [[0, 0, 3, 0], [1, 0, 0, 0]]
    assert ["".join(text for text, _ in row) for row in drawn.cells()] == ["  █ ", "▒   "]


def test_nothing_measured_gives_no_map() -> None:
    assert heat_map([EMPTY] * 4, SECONDS, window=(0.0, 4.0), shape=(2, 4)) is None
    assert heat_map([], np.empty(0), window=(0.0, 4.0), shape=(2, 4)) is None


def test_cells_before_the_first_bin_are_blank() -> None:
    drawn = heat_map([LogHistogram.of([0.1])] * 4, SECONDS, window=(-4.0, 4.0), shape=(1, 8))
    assert drawn is not None
    assert drawn.counts.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]]


def test_a_bin_that_covers_more_columns_fills_them_and_more_bins_in_one_column_are_their_mean() -> None:
    bins = [LogHistogram.of([0.1] * many) for many in (1, 2, 3, 4)]
    wide = heat_map(bins, SECONDS, window=(0.0, 4.0), shape=(1, 8))
    narrow = heat_map(bins, SECONDS, window=(0.0, 4.0), shape=(1, 2))
    assert wide is not None
    assert narrow is not None
    assert wide.counts.tolist() == [[1, 1, 2, 2, 3, 3, 4, 4]]
    assert narrow.counts.tolist() == [[1.5, 3.5]]


@given(st.lists(st.lists(st.floats(1e-4, 1e3), max_size=8), min_size=4, max_size=4))
def test_with_a_column_for_each_bin_every_request_is_on_the_map(latencies: list[list[float]]) -> None:
    drawn = heat_map([LogHistogram.of(each) for each in latencies], SECONDS, window=(0.0, 4.0), shape=(7, 4))
    counted = [0] * 4 if drawn is None else drawn.counts.sum(axis=0).tolist()
    assert counted == [len(each) for each in latencies]


def test_tokens_that_arrive_together_do_not_stretch_the_axis() -> None:
    bottom, top = log_limits(1e-9, 0.02)
    assert 3e-6 <= bottom <= 1e-5
    assert top == pytest.approx(0.03)


@given(st.floats(1e-5, 1e4), st.floats(1, 1e2))
def test_limits_enclose_their_range(low: float, ratio: float) -> None:
    bottom, top = log_limits(low, low * ratio)
    assert bottom <= low
    assert top >= min(low * ratio, 3e6)
    assert top > bottom


def test_shades_differ_without_colour_and_the_maximum_is_darkest() -> None:
    counts = np.array([[0.0, 1.0, 4.0, 20.0, 120.0, 500.0]])
    text = "".join(text for text, _ in HeatMap(counts=counts, low=0.01, high=1.0).cells()[0])
    assert (text[0], text[-1]) == (" ", "█")
    assert len(set(text)) == 6


def test_the_first_bin_of_a_run_stands_alone() -> None:
    drawn = heat_map([LogHistogram.of([0.1, 0.1])], np.array([1.0]), window=(-119.0, 1.0), shape=(4, 120))
    assert drawn is not None
    assert drawn.counts.sum() == 2
