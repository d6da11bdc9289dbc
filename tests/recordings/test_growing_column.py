"""A column that grows by blocks holds what the blocks held."""

import numpy as np
import pytest

from servetop.recordings.read import growing_column
from servetop.recordings.read.growing_column import GrowingColumn


def test_blocks_are_appended_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_column, "_FIRST", 2)
    column = GrowingColumn(np.array([1.0]))
    for block in ([], [2.0, 3.0], [4.0, 5.0, 6.0, 7.0, 8.0]):
        column.append(np.array(block))
    assert column.values.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_column_takes_on_the_widest_type() -> None:
    column = GrowingColumn(np.array([1.5], dtype=np.float32))
    assert column.values.dtype == np.float32
    column.append(np.array([0.1]))
    column.append(np.array([2.5], dtype=np.float32))
    assert column.values.dtype == np.float64
    assert column.values.tolist() == [1.5, 0.1, 2.5]
