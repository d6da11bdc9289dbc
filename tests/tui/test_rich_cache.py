"""A dashboard that is open for days keeps no texts that it drew once."""

from __future__ import annotations

from rich.segment import Segment

from servetop.tui.drawing.rich_cache import forget_drawn_text


def test_texts_that_were_cut_are_forgotten() -> None:
    for number in range(50):
        Segment(f"{number} 字 of a figure that changes").split_cells(7)
    assert Segment._split_cells.cache_info().currsize >= 50  # Rich still has this cache: else nothing is to forget
    forget_drawn_text()
    assert Segment._split_cells.cache_info().currsize == 0
