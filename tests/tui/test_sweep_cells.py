"""Cells of a sweep that could not be measured, in the matrix and below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

from servetop.core.config import StageConfig
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.detail.sweep import SweepPanel, draw_sweep
from servetop.tui.panels.header import draw_header
from servetop.tui.state.frame import Frame
from servetop.tui.state.rest_of_sweep import rest_of_sweep
from servetop.tui.state.sweep_cells import Load, failed_cells, planned_cells
from servetop.tui.state.sweep_table import SweepTable

FrameOf = Callable[..., Frame]
SETTINGS = '{"engine.args.gpu":"an-unknown-gpu"}'


def with_a_failed_start(canned: ModuleType) -> object:
    """A finished sweep whose plan names no batch size, and whose engine did not start for the last cell."""
    run = canned.finished()
    plan = [replace(stage, max_num_seqs=None) for stage in run.config.stages]
    plan[-1] = replace(plan[-1], settings={"engine.args.gpu": "an-unknown-gpu"})
    run.config = replace(run.config, stages=tuple(plan), drain_at_stages=True)
    last = run.stages[-1]
    failed = replace(last, at=126.0, max_num_seqs=None, settings=SETTINGS, failure="the engine did not start")
    run.stages = [*run.stages[:-1], replace(failed, label="16 req/s · --gpu an-unknown-gpu")]
    return run


def test_a_cell_whose_engine_did_not_start_is_the_planned_cell(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(with_a_failed_start(canned), 126.0)
    (failed,) = failed_cells(frame)
    assert failed[0] == 192
    assert failed in planned_cells(frame)


def test_a_long_load_below_the_matrix_is_not_cut_where_there_is_room(canned: ModuleType, frame_of: FrameOf) -> None:
    table = SweepTable.of(frame_of(with_a_failed_start(canned), 126.0))
    shown = Lines(draw_sweep(table, 120, 20)).plain
    assert "16 req/s · --gpu an-unknown-gpu" in shown
    assert "failed: the engine did not start" in shown


def test_a_skipped_cell_has_a_mark_of_its_own_from_the_time_at_which_it_was_skipped(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    run = canned.finished()
    high = StageConfig(request_rate=64.0, duration=20.0)
    run.config = replace(run.config, stages=(*run.config.stages, high), drain_at_stages=True)
    run.skipped = [SkippedCell.of(high, at=60.0, stage=1, reason="failed 1 > 0 at 8 req/s")]
    before, after = (SweepTable.of(frame_of(replace(run), at)) for at in (59.0, 126.0))
    assert (before.skipped, after.skipped) == (set(), {(192, Load(64.0))})
    shown = Lines(draw_sweep(after, 100, 10)).plain.split("\n")
    assert shown[1].split()[-1] == "⊣"
    assert "⊣ skipped" in Lines(draw_sweep(after, 100, 10)).plain
    assert "· planned" not in Lines(draw_sweep(after, 100, 10)).plain
    assert "⊣" not in Lines(draw_sweep(before, 100, 10)).plain


def test_the_matrix_and_the_header_say_what_is_left_until_the_sweep_ends(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.config = replace(run.config, drain_at_stages=True)
    early, late, ended = (frame_of(replace(run), at) for at in (50.0, 110.0, 126.0))
    assert [rest and rest.cells for rest in map(rest_of_sweep, (early, late, ended))] == [2, 0, None]
    rest = rest_of_sweep(early)
    assert rest is not None
    text = rest.text
    titles = ["".join(part for run in row for part, _ in [run]) for row in SweepPanel().title(early)]
    assert text.startswith("2 cells to come")
    assert text in titles
    assert text in "".join(part for part, _ in draw_header(early, 200))
    assert text not in "".join(part for part, _ in draw_header(early, 80))
