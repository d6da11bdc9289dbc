"""The screen of a sweep that has ended has the exact figures of its cells, and its story is about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from servetop.analysis.sweep.sweep_cell import CellIntervals
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.errors import RecordingError
from servetop.core.histogram import LogHistogram
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.detail.sweep import draw_sweep
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import METRICS
from servetop.tui.state.sweep_cells import Cell, Load, MatrixPlace, best_key, exact_cells, measured
from servetop.tui.state.sweep_table import SweepTable
from tests.analysis.sweep.sweep_grids import cell, judged

Dashboard = Callable[..., DashboardApp]


def text(app: DashboardApp, selector: str) -> str:
    return app.screen.query_one(selector, Panel).render().plain


def measured_cell(rate: float, **changes: Any) -> Cell:
    histograms = {metric: LogHistogram.of([1.0]) for metric in METRICS}
    return Cell(
        output_rate=rate,
        preempted=False,
        histograms=histograms,
        **({"unsteady": False, "running_now": False} | changes),
    )


def verdict_of(run: Any, batch: int) -> SweepVerdict:
    """A verdict with a cell for each stage of a run; the second one is the best."""
    figures = ("4/99", "7.5/98", "9/60", "8/50")
    rates = [stage.request_rate for stage in run.config.stages]
    return judged(
        [cell(batch, rate, each, stage=at) for at, (rate, each) in enumerate(zip(rates, figures, strict=True))]
    )


@pytest.fixture
def sweep(canned: ModuleType) -> Any:
    run = canned.finished()
    run.config = replace(run.config, drain_at_stages=True, goodput={"ttft": 0.5})
    return run


def test_an_ended_sweep_shows_the_figures_of_the_summary(
    canned: ModuleType, sweep: Any, frame_of: Callable[..., Frame]
) -> None:
    frame = frame_of(sweep, 1e6)
    cells = exact_cells(measured(frame), verdict_of(sweep, canned.BATCH))
    assert {load.rate: round(each.output_rate) for (_, load), each in cells.items() if load.rate in (4, 8)} == {
        4.0: round(400 / 0.99),
        8.0: round(750 / 0.98),
    }
    assert cells[canned.BATCH, Load(8.0)].p99("ttft") == pytest.approx(0.04)
    assert (cells[canned.BATCH, Load(8.0)].goodput, cells[canned.BATCH, Load(16.0)].missed) == (7.5, True)


def test_repeats_have_the_interval_over_starts_below_their_mean(
    canned: ModuleType, sweep: Any, frame_of: Callable[..., Frame]
) -> None:
    frame, verdict = frame_of(sweep, 1e6), verdict_of(sweep, canned.BATCH)
    ends: dict[str, Any] = dict.fromkeys(each.name for each in fields(CellIntervals))
    intervals = CellIntervals(**ends | {"output_throughput": (404.0 - 30.0, 404.0 + 30.0)})
    first = replace(verdict.cells[0], stages=(0, 8, 9), starts=3, intervals=intervals)
    several = replace(verdict, cells=(first, *verdict.cells[1:]))
    shown = Lines(draw_sweep(SweepTable.of(replace(frame, sweep=several)), 160, 10)).plain.split("\n")
    assert "404" in shown[1]
    assert "±30 of 3" in shown[2]
    assert "± 95 % over n starts" in shown[-1]
    assert "×n mean of n" in shown[-1]
    assert "of one start" not in shown[-1]


def test_repeats_of_one_start_are_said_to_be_so(canned: ModuleType, sweep: Any, frame_of: Callable[..., Frame]) -> None:
    frame, verdict = frame_of(sweep, 1e6), verdict_of(sweep, canned.BATCH)
    repeated = replace(verdict, cells=(replace(verdict.cells[0], stages=(0, 8)), *verdict.cells[1:]))
    shown = Lines(draw_sweep(SweepTable.of(replace(frame, sweep=repeated)), 160, 10)).plain
    assert "×n mean of n repeats of one start" in shown
    assert "±" not in shown


def test_a_growing_sweep_shows_the_figures_of_its_ticks(sweep: Any, frame_of: Callable[..., Frame]) -> None:
    cells = measured(frame_of(sweep, 60.0))
    assert exact_cells(cells, None) == cells


def test_the_star_is_on_the_cell_with_the_most_goodput_that_keeps_the_objective() -> None:
    cells: dict[MatrixPlace, Cell] = {
        (16, Load(8.0)): measured_cell(900.0, goodput=7.0, share=0.99),
        (16, Load(16.0)): measured_cell(1500.0, goodput=9.0, share=0.6),
        (64, Load(16.0)): measured_cell(1400.0, goodput=14.0, share=0.98),
        (64, Load(24.0)): measured_cell(1900.0, goodput=20.0, share=0.99, running_now=True),
    }
    assert best_key(cells) == (64, Load(16.0))
    shown = Lines(draw_sweep(SweepTable(cells=cells), 90, 12)).plain.split("\n")
    assert "1,400★" in shown[4]
    assert "1,500✗" in shown[1]
    assert "1,900…" in shown[4]
    assert "14  98%" in shown[6]
    assert "✗ misses objective" in shown[-1]


def test_with_little_room_the_selected_figure_is_below_the_throughput() -> None:
    table = SweepTable(cells={(16, Load(8.0)): measured_cell(900.0, goodput=7.0, share=0.99)})
    latency, goodput = (
        Lines(draw_sweep(replace(table, goodput_first=first), 60, 5)).plain.split("\n")[2] for first in (False, True)
    )
    assert "992ms" in latency
    assert "7  99%" in goodput


async def test_the_key_for_the_next_latency_selects_goodput_on_this_screen_only(
    sweep: Any, dashboard: Dashboard
) -> None:
    app = dashboard(sweep, start_at=1e6)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("t", "t", "t", "t")
        assert (app.viewer.view.metric, app.viewer.view.goodput) == ("ttft", False)
        await pilot.press("4", "t", "t", "t", "t")
        assert (app.viewer.view.metric, app.viewer.view.goodput) == ("e2el", True)
        await pilot.press("t")
        assert (app.viewer.view.metric, app.viewer.view.goodput) == ("ttft", False)


async def test_the_story_of_a_sweep_waits_for_its_exact_figures(
    canned: ModuleType, sweep: Any, dashboard: Dashboard, tmp_path: Path
) -> None:
    found, asked = verdict_of(sweep, canned.BATCH), list[Path]()

    def read(path: Path) -> SweepVerdict:
        asked.append(path)
        return found

    path = tmp_path / "run.servetop"
    app = dashboard(sweep, start_at=1e6, options=DashboardOptions(read_sweep=read, recording=path))
    assert app.viewer.frame().story is None
    async with app.run_test(size=(160, 40)) as pilot:
        while app.viewer.frame().story is None:
            await pilot.pause(0.01)
        assert "★ best within TTFT ≤ 500 ms: batch 192 at 8 req/s (7.65 req/s done, 98 % within" in text(
            app, "#diagnosis"
        )
        await pilot.press("4")
        assert "765★" in text(app, "#sweep")
    assert asked == [path]


async def test_figures_that_cannot_be_read_leave_the_story_of_the_run(
    sweep: Any, dashboard: Dashboard, tmp_path: Path
) -> None:
    def damaged(path: Path) -> SweepVerdict:
        raise RecordingError(f"{path.name} is damaged")

    options = DashboardOptions(read_sweep=damaged, recording=tmp_path / "run.servetop")
    app = dashboard(sweep, start_at=1e6, options=options)
    async with app.run_test(size=(120, 40)) as pilot:
        while app.viewer.frame().story is None:
            await pilot.pause(0.01)
        assert app.viewer.view.message == "no exact figures of the cells: run.servetop is damaged"
        assert "best within" not in text(app, "#diagnosis")


async def test_a_run_that_is_not_a_sweep_is_not_read_again(
    canned: ModuleType, dashboard: Dashboard, tmp_path: Path
) -> None:
    asked: list[Path] = []
    options = DashboardOptions(read_sweep=asked.append, recording=tmp_path / "run.servetop")
    app = dashboard(canned.finished(), start_at=1e6, options=options)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.viewer.frame().story is not None
    assert asked == []
