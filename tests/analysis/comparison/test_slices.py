"""Slices of a stage hold equally many consecutive requests, and the same ones in runs with equal seeds."""

import dataclasses
import math

import numpy as np
import pytest

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.slices import sliced, sliced_pair
from tests.analysis.comparison.samples import stage


def test_slices_hold_equally_many_requests_and_span_the_window() -> None:
    found = sliced(stage(rate=8.0, seconds=100.0))
    assert found is not None
    assert found.count == 32
    assert set(np.bincount(found.slice_of).tolist()) == {25}
    assert found.edges[0] == 0.0
    assert found.edges[-1] == pytest.approx(100.0)


def test_fewer_requests_give_fewer_slices_and_too_few_none() -> None:
    few, too_few = sliced(stage(rate=1.0, seconds=40.0)), sliced(stage(rate=1.0, seconds=15.0))
    assert few is not None
    assert few.count == 16
    assert too_few is None


def test_requests_that_were_due_at_once_are_divided_by_time() -> None:
    burst = stage(rate=8.0, seconds=100.0)
    found = sliced(dataclasses.replace(burst, due=np.zeros_like(burst.due), until=50.0))
    assert found is not None
    assert found.seconds.tolist() == pytest.approx([50.0 / 32] * 32)


def test_equal_seeds_pair_the_requests_that_both_windows_contain() -> None:
    a = stage(rate=8.0, seconds=100.0)
    b = dataclasses.replace(stage(rate=8.0, seconds=100.0, noise=5), start=10.0)
    pair = sliced_pair(a, b)
    assert pair is not None
    assert [each.chosen.size for each in pair] == [720, 720]
    assert np.array_equal(a.number[pair[0].chosen], b.number[pair[1].chosen])


def test_other_seeds_and_other_lengths_are_not_paired() -> None:
    a = stage()
    longer = dataclasses.replace(stage(noise=5), output_tokens=np.full(800, 41.0))
    assert sliced_pair(a, stage(seed=2)) is None
    assert sliced_pair(a, longer) is None


def test_equal_cells_at_other_places_of_their_sweeps_are_paired() -> None:
    a, later = stage(), stage(noise=5)
    later = dataclasses.replace(later, number=later.number + 5000)
    pair = sliced_pair(a, later)
    assert pair is not None
    assert np.array_equal(a.place[pair[0].chosen], later.place[pair[1].chosen])


def test_a_stage_whose_first_request_is_missing_is_paired_by_the_numbers_in_the_run() -> None:
    lengths = np.arange(800.0) % 37 + 1
    a = dataclasses.replace(stage(), output_tokens=lengths)
    b = dataclasses.replace(stage(noise=5), output_tokens=np.arange(1.0, 801.0) % 37 + 1, number=np.arange(1, 801))
    pair = sliced_pair(a, b)
    assert pair is not None
    assert np.array_equal(a.number[pair[0].chosen], b.number[pair[1].chosen])


def test_sums_leave_out_unknown_values() -> None:
    found = sliced(stage(rate=8.0, seconds=8.0))
    assert found is not None
    values = np.ones(64)
    values[:2] = np.nan
    assert found.sums(values).tolist() == [0.0, *[2.0] * 31]


def test_slices_of_a_closed_loop_hold_whole_waves() -> None:
    load = StageLoad(request_rate=math.inf, max_concurrency=12)
    found = sliced(stage(rate=8.0, seconds=50.0, load=load))
    assert found is not None
    assert found.chosen.size == 400 // 12 * 12
    assert set(np.bincount(found.slice_of).tolist()) == {12, 24}
    few = sliced(stage(rate=8.0, seconds=10.0, load=load))
    assert few is not None
    assert few.chosen.size == 80
