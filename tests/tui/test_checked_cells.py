"""Marks of the cells that keep or miss their thresholds, at any time of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from servetop.analysis.sweep.cell_checks import CellChecks, CellOutcome, CheckedCell, ThresholdCheck
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.detail.sweep import SweepPanel, draw_sweep
from servetop.tui.state.checked_cells import checked_cells
from servetop.tui.state.frame import Frame
from servetop.tui.state.sweep_table import SweepTable
from tests.analysis.sweep.sweep_grids import cell, judged

FrameOf = Callable[..., Frame]
OUTCOMES = (CellOutcome.KEPT, CellOutcome.NOT_DECIDED, CellOutcome.MISSED, CellOutcome.KEPT)


def checks_of(run: Any, batch: int) -> CellChecks:
    """An outcome for each stage of a run."""
    cells = [
        CheckedCell(
            label="",
            request_rate=stage.request_rate,
            max_concurrency=None,
            max_num_seqs=batch,
            stages=(number,),
            outcome=outcome,
            thresholds=(ThresholdCheck(threshold="", outcome=outcome, value=None, text=""),),
        )
        for number, (stage, outcome) in enumerate(zip(run.config.stages, OUTCOMES, strict=True))
    ]
    return CellChecks.of(["p99_ttft_ms<=500"], ["p99 TTFT ≤ 500 ms"], cells)


@pytest.fixture
def sweep(canned: ModuleType) -> Any:
    run = canned.finished()
    run.config = replace(run.config, drain_at_stages=True, cell_thresholds=("p99_ttft_ms<=500",))
    return run


def at(frame_of: FrameOf, canned: ModuleType, run: Any, time: float) -> Frame:
    return replace(frame_of(replace(run), time), checks=checks_of(run, canned.BATCH))


def test_a_cell_is_marked_once_it_has_ended(canned: ModuleType, sweep: Any, frame_of: FrameOf) -> None:
    starts = [stage.at for stage in sweep.stages]
    second = next(stage.at for stage in sweep.stages if stage.index == sweep.stages[-1].index - 2)
    assert starts[0] < second
    before, after = (checked_cells(at(frame_of, canned, sweep, time)) for time in (second - 0.5, second + 0.5))
    ended = checked_cells(at(frame_of, canned, sweep, 1e6))
    assert before is not None
    assert after is not None
    assert ended is not None
    assert (len(before.cells), len(after.cells), len(ended.cells)) == (0, 1, 4)


def test_a_cell_with_a_repeat_to_come_is_not_marked(canned: ModuleType, sweep: Any, frame_of: FrameOf) -> None:
    first = replace(sweep.config.stages[0], repeat=1)
    sweep.config = replace(sweep.config, stages=(*sweep.config.stages, first))
    middle = max(stage.at for stage in sweep.stages) + 0.5
    frame = frame_of(sweep, middle)
    run = canned.finished()
    found = checked_cells(replace(frame, checks=checks_of(run, canned.BATCH)))
    assert found is not None
    assert sweep.config.stages[0].request_rate not in [each.request_rate for each in found.cells]
    assert found.cells


def test_the_matrix_has_a_mark_and_a_legend_for_each_outcome(canned: ModuleType, sweep: Any, frame_of: FrameOf) -> None:
    shown = Lines(draw_sweep(SweepTable.of(at(frame_of, canned, sweep, 1e6)), 120, 10)).plain.split("\n")
    assert [mark for mark in shown[1] if mark in "✓?!"] == ["✓", "?", "!", "✓"]
    assert "thresholds ✓ kept ! missed" in shown[-1]
    assert "? not decided" in shown[-1]


def test_the_title_counts_the_cells(canned: ModuleType, sweep: Any, frame_of: FrameOf) -> None:
    parts = SweepPanel().title(at(frame_of, canned, sweep, 1e6))
    assert "2 of 4 cells keep p99 TTFT ≤ 500 ms, 1 not decided" in [part[0][0] for part in parts]


def test_without_thresholds_nothing_is_marked(canned: ModuleType, frame_of: FrameOf) -> None:
    assert checked_cells(frame_of(canned.finished(), 1e6)) is None


async def test_a_growing_sweep_is_read_once_for_each_cell_that_has_ended(
    canned: ModuleType, sweep: Any, dashboard: Callable[..., DashboardApp], tmp_path: Path
) -> None:
    asked, verdict = list[Path](), judged([cell(canned.BATCH, 4, "4/99")])
    found = replace(verdict, checks=checks_of(sweep, canned.BATCH))

    def read(path: Path) -> Any:
        asked.append(path)
        return found

    sweep.end = None
    path = tmp_path / "run.servetop"
    app = dashboard(sweep, start_at=1e6, options=DashboardOptions(read_sweep=read, recording=path))
    async with app.run_test(size=(120, 40)) as pilot:
        while app.viewer.frame().checks is None:
            await pilot.pause(0.01)
        shown = checked_cells(app.viewer.frame())
    assert shown is not None
    assert len(shown.cells) == 3
    assert asked == [path]
