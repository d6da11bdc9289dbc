"""Which cells of a sweep have a higher load in the row of another one."""

from __future__ import annotations

import math
from typing import Any

import pytest

from servetop.analysis.cells.cell_row import is_higher, is_same_cell
from servetop.core.config import StageConfig


def cell(rate: float = math.inf, **fields: Any) -> StageConfig:
    return StageConfig(request_rate=rate, **fields)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (cell(4.0), cell(8.0)),
        (cell(4.0, max_num_seqs=8), cell(8.0, max_num_seqs=8, repeat=2)),
        (cell(4.0, max_concurrency=16), cell(max_concurrency=16)),
        (cell(max_concurrency=16), cell(max_concurrency=64)),
        (cell(max_concurrency=16), cell()),
        (cell(4.0, settings={"input_len": 8}, num_prompts=9), cell(8.0, settings={"input_len": 8}, num_prompts=99)),
    ],
)
def test_a_higher_load_of_the_row(low: StageConfig, high: StageConfig) -> None:
    assert is_higher(high, low)
    assert not is_higher(low, high)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cell(4.0), cell(4.0, repeat=1)),
        (cell(4.0, max_num_seqs=8), cell(8.0, max_num_seqs=16)),
        (cell(4.0, settings={"input_len": 8}), cell(8.0, settings={"input_len": 16})),
        (cell(4.0, max_concurrency=16), cell(8.0, max_concurrency=64)),
        (cell(4.0, max_concurrency=16), cell(max_concurrency=64)),
        (cell(4.0, warmup=True), cell(8.0)),
    ],
)
def test_cells_of_two_rows_have_no_order(one: StageConfig, other: StageConfig) -> None:
    assert not is_higher(one, other)
    assert not is_higher(other, one)


def test_repeats_are_one_cell() -> None:
    assert is_same_cell(cell(4.0, repeat=1), cell(4.0, repeat=3))
    assert not is_same_cell(cell(4.0), cell(8.0))
