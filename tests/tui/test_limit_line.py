"""Objectives in charts and heat maps: their line, their label, and what is beyond them."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.core.histogram import LogHistogram
from servetop.core.text.formats import axis_seconds
from servetop.tui.drawing.charts import Axes, chart
from servetop.tui.drawing.heat_map import heat_map
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.limit_line import STYLE, limit_row, limit_trace, with_limit_label
from servetop.tui.panels.live.latency_heat import draw_heat, limit_row_of

AXES = Axes(window=(0.0, 60.0), limit=2.0, label=axis_seconds)


def plotted(limit: float | None, *, width: int = 40, height: int = 9) -> list[list[tuple[str, str]]]:
    plot = chart(limit_trace(AXES, limit), AXES, width=width, height=height)
    return [list(row) for row in with_limit_label(plot, AXES, limit, width=width)]


def test_the_line_and_its_label_are_in_one_row_of_the_chart() -> None:
    rows = plotted(0.5)
    labelled = [y for y, row in enumerate(rows) if row[0] == ("500ms┤", STYLE)]
    drawn = [y for y, row in enumerate(rows) if any(style == STYLE and text.strip() for text, style in row[1:])]
    assert labelled == drawn == [5]
    assert [rows[y][0][0].strip() for y in (0, 7)] == ["2s┤", "0┤"]


@pytest.mark.parametrize("limit", [None, 2.5])
def test_a_limit_beyond_the_chart_is_not_drawn(limit: float | None) -> None:
    assert limit_row(AXES, limit, 8) is None
    assert plotted(limit) == [list(row) for row in chart([], AXES, width=40, height=9)]


def test_the_lowest_row_keeps_its_zero() -> None:
    assert plotted(0.01)[7][0][0] == "    0┤"
    assert limit_row(AXES, 2.0, 8) == 0


def test_cells_of_the_heat_map_above_the_objective_stand_out() -> None:
    bins = [LogHistogram.of([0.012, 0.9])] * 4
    drawn = heat_map(bins, np.arange(1.0, 5.0), window=(0.0, 4.0), shape=(4, 34))
    assert drawn is not None
    assert [limit_row_of(drawn, each) for each in (2.0, 0.5, 0.02, 0.001)] == [-1, 0, 3, 4]
    rows = draw_heat(drawn, AXES, 40, 6, limit=0.12)[1:5]
    shown = Lines(rows).plain.split("\n")
    assert shown[1].strip() == "120ms┤" + "┄" * 34
    assert {style for text, style in rows[0][1:] if text.strip()} == {"bad"}
    assert "bad" not in {style for row in rows[1:] for _, style in row}
    plain = draw_heat(drawn, AXES, 40, 6)
    assert "bad" not in {style for row in plain for _, style in row}


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (4, {0: "30s┤", 3: "10ms┤"}),
        (8, {0: "30s┤", 3: "1s┤", 5: "100ms┤", 7: "10ms┤"}),
        (14, {0: "30s┤", 5: "1s┤", 9: "100ms┤", 13: "10ms┤"}),
    ],
)
def test_between_its_edges_the_heat_map_labels_powers_of_ten(rows: int, labels: dict[int, str]) -> None:
    bins = [LogHistogram.of([0.012, 20.0])] * 4
    drawn = heat_map(bins, np.arange(1.0, 5.0), window=(0.0, 4.0), shape=(rows, 34))
    assert drawn is not None
    shown = [row[0][0].strip() for row in draw_heat(drawn, AXES, 40, rows + 2)[1 : rows + 1]]
    assert {y: label for y, label in enumerate(shown) if label != "│"} == labels
