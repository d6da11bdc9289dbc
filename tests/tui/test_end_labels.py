"""Names at the ends of lines: beside the newest values, and never over the lines."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import Axes, chart
from servetop.tui.drawing.end_labels import with_end_labels
from servetop.tui.drawing.text_runs import Lines, row_width

WIDTH, HEIGHT = 46, 5
"""Forty cells and four rows of a chart."""


def labelled(low: float, high: float, *, until: float = 20.0, width: int = WIDTH) -> list[str]:
    """Two horizontal lines up to a time on an axis of 40 s, 0 to 16, with their names."""
    times = np.arange(1.0, until + 1)
    lines = [ChartLine(times=times, values=np.full(times.size, each), style="sky") for each in (low, high)]
    axes = Axes(window=(0.0, 40.0), limit=16.0)
    plot = chart(lines, axes, width=width, height=HEIGHT)
    rows = with_end_labels(plot, axes, (lines[0], "p50"), (lines[1], "p99"), width=width)
    assert max(row_width(row) for row in rows) <= width
    changed = zip(Lines(plot).plain, Lines(rows).plain, strict=True)
    assert {before for before, after in changed if before != after} <= {" "}
    return Lines(rows).plain.split("\n")[:-1]


def places(rows: list[str]) -> dict[str, tuple[int, int]]:
    """Row and column of each name."""
    return {name: (y, row.index(name) - 6) for name in ("p50", "p99") for y, row in enumerate(rows) if name in row}


def test_names_stand_beside_the_newest_values() -> None:
    assert places(labelled(2.0, 14.0)) == {"p50": (3, 21), "p99": (0, 21)}


@pytest.mark.parametrize(("value", "rows"), [(14.0, (1, 0)), (7.0, (3, 2)), (1.0, (3, 2))])
def test_names_of_equal_values_are_in_neighbouring_rows(value: float, rows: tuple[int, int]) -> None:
    found = places(labelled(value, value))
    assert (found["p50"][0], found["p99"][0]) == rows


def test_at_the_right_edge_names_are_above_and_below_the_lines() -> None:
    assert places(labelled(6.0, 11.0, until=40.0)) == {"p50": (3, 37), "p99": (0, 37)}
    assert places(labelled(1.0, 15.0, until=40.0)) == {}


def test_a_narrow_chart_or_one_without_values_has_no_names() -> None:
    assert places(labelled(2.0, 14.0, width=11)) == {}
    assert places(labelled(float("nan"), float("nan"))) == {}
