"""The map of KV blocks shows every block exactly once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.tui.drawing.block_map import block_map, blocks_per_cell
from servetop.tui.drawing.text_runs import Lines, row_width


@pytest.mark.parametrize(
    ("total", "cells", "each"), [(100, 100, 1), (101, 100, 2), (2880, 100, 50), (2880, 400, 10), (7, 400, 1)]
)
def test_a_cell_stands_for_a_round_number_of_blocks(total: int, cells: int, each: int) -> None:
    assert blocks_per_cell(total, cells=cells) == each


def test_a_partly_used_cell_is_partly_filled_and_free_ones_are_dots() -> None:
    assert Lines(block_map(25, 60, width=4, height=2, style="sky")).plain == "⣿⣿⣤·\n··"


@given(total=st.integers(1, 3_000_000), share=st.floats(0, 1.2), width=st.integers(1, 120), height=st.integers(1, 30))
def test_the_map_stays_in_its_box_and_shows_every_block(total: int, share: float, width: int, height: int) -> None:
    used = round(total * share)
    rows = block_map(used, total, width=width, height=height, style="sky")
    assert len(rows) <= height
    assert max(row_width(row) for row in rows) <= width
    shown = Lines(rows).plain.replace("\n", "")
    each = blocks_per_cell(total, cells=width * height)
    assert len(shown) == -(-total // each)
    assert shown.count("⣿") in {min(used, total) // each}
    assert ("·" in shown) == (len(shown) > -(-min(used, total) // each))
