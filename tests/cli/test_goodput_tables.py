"""Goodput of a sweep, batch size down and load across."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.cli.report.goodput_tables import goodput_markdown, goodput_tables
from servetop.cli.tables import SanitizingConsole
from tests.analysis.sweep.sweep_grids import cell, grid, judged

GRID = {16: "5.5/99 1.3/18", 256: "7.1/99 11/98.7"}


def printed(tables: Sequence[Group]) -> list[list[str]]:
    console = SanitizingConsole(width=120, force_terminal=False)
    with console.capture() as capture:
        console.print(*tables)
    return [line.split() for line in capture.get().splitlines() if line.strip()]


def rows(sweep: SweepVerdict) -> list[list[str]]:
    return [line for line in printed(goodput_tables(sweep)) if line[0] in ("batch", "–") or line[0].isdigit()]


def test_the_best_cell_and_those_that_miss_the_objective_are_marked() -> None:
    sweep = judged(grid(GRID))
    assert rows(sweep) == [
        ["batch", "8", "16"],
        ["16", "5.50", "1.30", "✗"],
        ["256", "7.10", "11.0", "★"],
        ["batch", "8", "16"],
        ["16", "99", "%", "18", "%", "✗"],
        ["256", "99", "%", "98.7", "%", "★"],
    ]
    title = " ".join(printed(goodput_tables(sweep))[0])
    assert title == (
        "Goodput within TTFT ≤ 500 ms, req/s (batch size down, requests/s across; ★ best; ✗ under 95 % within)"
    )


def test_a_sweep_without_objectives_has_no_goodput() -> None:
    sweep = judged(grid({64: "5 6"}), objectives={})
    assert (goodput_tables(sweep), goodput_markdown(sweep)) == ([], [])


def test_a_sweep_over_concurrency_has_one_row_and_cells_that_were_not_measured_stay_blank() -> None:
    assert rows(judged(grid({None: "4/99 7/98"}, closed=True)))[:2] == [
        ["batch", "c8", "c16"],
        ["–", "4.00", "7.00", "★"],
    ]
    gap = rows(judged([cell(16, 8.0, "5/99"), cell(64, 16.0, "9/99", steady=False, repeats=2)]))
    assert gap[1:3] == [["16", "5.00"], ["64", "9.00", "★~×2"]]


def test_markdown_has_the_same_figures() -> None:
    lines = goodput_markdown(judged(grid(GRID)))
    assert lines[3:7] == [
        "| batch | 8 | 16 |",
        "| ---: | ---: | ---: |",
        "| 16 | 5.50 | 1.30 ✗ |",
        "| 256 | 7.10 | 11.0 ★ |",
    ]
