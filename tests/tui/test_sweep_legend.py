"""The legend below the matrix of a sweep, which explains every mark in use at any width."""

from __future__ import annotations

import pytest

from servetop.analysis.sweep.cell_checks import CellOutcome
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.detail.sweep import draw_sweep
from servetop.tui.panels.detail.sweep_legend import legend
from servetop.tui.state.sweep_cells import Cell, Load, MatrixPlace
from servetop.tui.state.sweep_table import SweepTable
from tests.tui.test_sweep import cell

LOADS = [Load(rate) for rate in (4.0, 8.0, 16.0, 32.0, 64.0)]
PLACES: list[MatrixPlace] = [(batch, load) for batch in (64, 256) for load in LOADS]
RATES = (300.0, 600.0, 900.0, 700.0)
CELLS: dict[MatrixPlace, Cell] = {
    (batch, load): cell(
        rate,
        preempted=load == LOADS[3],
        unsteady=load == LOADS[1],
        running_now=(batch, load) == (256, LOADS[3]),
        repeats=3,
        goodput=4.0,
        share=1.0 if load < LOADS[2] else 0.5,
    )
    for batch in (64, 256)
    for load, rate in zip(LOADS, RATES, strict=False)
}
OUTCOMES = (CellOutcome.KEPT, CellOutcome.MISSED, CellOutcome.NOT_DECIDED, CellOutcome.KEPT)
ALL_MARKS = SweepTable(
    cells=CELLS,
    planned=[*PLACES, (512, LOADS[0])],
    predictions=dict.fromkeys(PLACES, 500.0),
    failed={(64, LOADS[4])},
    skipped={(256, LOADS[4])},
    checked=dict(zip(CELLS, (*OUTCOMES, *OUTCOMES), strict=True)),
    spreads=dict.fromkeys(CELLS, "±94 of 3"),
)
MARKS = [
    "tok/s", "± 95 % over n starts", "TTFT p99", "goodput req/s", "≈ predicted", "★ best", "✗ misses objective",
    "✓ kept", "! missed", "? not decided", "▼ dip", "▲ preempted", "~ not steady", "×n mean of n", "… now", "· planned",
    "⊣ skipped", "✗ failed",
]  # fmt: skip


def rows_of(table: SweepTable, width: int) -> list[str]:
    return Lines(legend(table, table.rows_per_batch, width)).plain.split("\n")


@pytest.mark.parametrize("width", [36, 76, 116, 156, 196])
def test_every_mark_in_use_is_in_the_legend_at_any_width(width: int) -> None:
    rows = rows_of(ALL_MARKS, width)
    assert [mark for mark in MARKS if not any(mark in row for row in rows)] == []
    assert max(map(len, rows)) <= width
    assert all(row.startswith("     ") and row[5] != " " for row in rows[1:])


@pytest.mark.parametrize(("width", "count"), [(76, 4), (116, 3), (156, 2), (196, 2), (260, 1)])
def test_a_legend_has_as_few_rows_as_small_gaps_allow(width: int, count: int) -> None:
    assert len(rows_of(ALL_MARKS, width)) == count


def test_a_legend_of_two_rows_takes_the_blank_row_above_it_if_there_is_no_other() -> None:
    tight, loose = (Lines(draw_sweep(ALL_MARKS, 156, height)).plain.split("\n") for height in (18, 19))
    assert tight[16].startswith("░▒▓█ tok/s")
    assert tight[11].split()[:2] == ["512", "·"]
    assert [loose[16], loose[17][:10]] == ["", "░▒▓█ tok/s"]


def test_a_matrix_with_too_few_rows_keeps_its_throughputs_and_its_legend_before_the_rest() -> None:
    shown = Lines(draw_sweep(ALL_MARKS, 76, 8)).plain.split("\n")
    assert [row[:12].split()[0] for row in shown[1:4]] == ["64", "256", "512"]
    assert "✗ failed" in shown[-1]
    assert len(shown) == 8


def test_the_number_of_starts_does_not_touch_the_next_cell() -> None:
    row = Lines(draw_sweep(ALL_MARKS, 116, 30)).plain.split("\n")[2]
    assert row.count("±94 of 3 ") == 4
