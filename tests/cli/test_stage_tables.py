"""The tables of stages and by load, from plain figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.console import Group

from servetop.analysis.summary.measured_sweep import measured_cells
from servetop.analysis.summary.summary_types import StageSummary
from servetop.cli.report.stage_tables import grid_tables, stages_table
from servetop.cli.tables import SanitizingConsole
from tests.cli.summaries import stage


def cell(batch: int, *, steered: str | None = None) -> StageSummary:
    made = stage("3 req/s", output_throughput=100.0 * batch)
    return dataclasses.replace(made, stage=batch, request_rate=3.0, max_num_seqs=batch, steered=steered)


def printed(tables: Sequence[Group]) -> str:
    console = SanitizingConsole(width=120, force_terminal=False)
    with console.capture() as capture:
        console.print(*tables)
    return capture.get()


STEERED = cell(32, steered="rate 3 to 27.9 req/s")


def test_a_steered_stage_is_in_no_table_by_its_planned_load() -> None:
    cells = [cell(8), cell(16), STEERED]
    figures = printed(grid_tables(cells)).split()
    assert ("1,600" in figures, "3,200" in figures) == (True, False)
    assert [each.max_num_seqs for each in measured_cells(cells, objectives={})] == [8, 16]


def test_the_table_of_stages_says_how_a_stage_was_steered() -> None:
    assert "3 req/s (rate 3 to 27.9 req/s)" in printed([stages_table([cell(8), STEERED])])


def test_cells_of_other_settings_or_limits_are_in_rows_of_their_own() -> None:
    cells = [
        dataclasses.replace(cell(8), max_concurrency=limit, settings=f'{{"input_len":{length}}}')
        for length in (512, 64)
        for limit in (2, 4)
    ]
    table = printed(grid_tables(cells)[:1]).splitlines()
    assert "settings and batch size down" in table[1]
    assert [row.partition("  ")[0].strip() for row in table[4:8]] == [
        "in 512 · 8 · c2",
        "in 512 · 8 · c4",
        "in 64 · 8 · c2",
        "in 64 · 8 · c4",
    ]


def test_a_failed_cell_without_an_engine_shows_no_batch_size() -> None:
    failed = dataclasses.replace(cell(8), max_num_seqs=None, outcome="failed", failure="no such GPU", finished=False)
    cells = [cell(8), dataclasses.replace(failed, settings='{"engine.args.gpu":"l5"}')]
    rows = [row.split() for row in printed(grid_tables(cells)[:1]).splitlines()]
    assert ["--gpu", "l5", "failed"] in rows
    bare = [row.split() for row in printed(grid_tables([cell(8), failed])[:1]).splitlines()]
    assert ["–", "failed"] in bare
