"""The screens behind the number keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.core.config import PredictedCell, WorkloadConfig
from servetop.core.histogram import LogHistogram
from servetop.tui.app import DashboardApp
from servetop.tui.drawing import formats
from servetop.tui.drawing.distributions import draw_cdf, draw_ridgelines
from servetop.tui.drawing.scatter import Point, draw_scatter, knees, pareto
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.detail.config import config_rows
from servetop.tui.panels.detail.sweep import SweepPanel, draw_sweep
from servetop.tui.panels.panel import Panel
from servetop.tui.screens.details import ConfigScreen, DistributionsScreen, SweepScreen
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.log_screen import LogScreen
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import dips
from servetop.tui.state.sweep_cells import Cell, deviations, measured, predicted

Dashboard = Callable[..., DashboardApp]
FrameOf = Callable[..., Frame]


def rows(app: DashboardApp, selector: str) -> list[str]:
    """The rows of a panel of the top screen."""
    return app.screen.query_one(selector, Panel).render().plain.split("\n")


async def test_number_keys_switch_between_any_screens_and_escape_goes_back(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test() as pilot:
        for key, kind in (
            ("3", DistributionsScreen), ("4", SweepScreen), ("5", LogScreen), ("6", ConfigScreen), ("1", LiveScreen),
            ("4", SweepScreen), ("escape", LiveScreen),
        ):  # fmt: skip
            await pilot.press(key)
            assert type(app.screen) is kind
            assert len(app.screen_stack) <= 2


async def test_the_sweep_fills_in_during_the_run(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(50.0)
    app = dashboard(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        row = rows(app, "#sweep")[1]
        assert re.findall(r"[\d,]+\S*|·+", row)[:3] == ["192", "502★", "910…"]
        run.now = 110.0
        app.poll()
        row = rows(app, "#sweep")[1]
        assert re.findall(r"[\d,]+\S*", row) == ["192", "502", "856", "1,820★~", "2,199▲…"]


async def test_the_configuration_scrolls_to_its_end(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("6", *["pagedown"] * 9)
        last = "".join(text for text, _ in config_rows(app.viewer.run.header)[-1])
        assert rows(app, "#config")[-1].rstrip() == last.rstrip()
        await pilot.press(*["pageup"] * 9)
        assert rows(app, "#config")[0] == "run"


def test_stages_are_compared_as_of_the_time_shown(canned: ModuleType, frame_of: FrameOf) -> None:
    figures = frame_of(canned.finished(), 50.0).per_stage()
    assert [each.stage.request_rate for each in figures] == [4.0, 8.0]
    assert [each.ended for each in figures] == [True, False]


def test_repeats_of_a_cell_are_averaged_and_warm_ups_left_out(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.stages = [
        replace(stage, request_rate=stage.request_rate and 8.0, warmup=stage.index == 0) for stage in run.stages
    ]
    figures = frame_of(run, 126.0).per_stage()
    cells = measured(figures, {})
    assert list(cells) == [(192, 8.0)]
    assert not cells[192, 8.0].unsteady
    assert cells[192, 8.0].output_rate == pytest.approx(sum(each.output_rate for each in figures) / 3)


def test_only_a_finished_cell_is_the_peak_and_unplanned_cells_stay_blank() -> None:
    cells: dict[tuple[int | None, float], Cell] = {
        (64, 8.0): Cell(output_rate=900.0, preempted=False, unsteady=False, running_now=False),
        (128, 16.0): Cell(output_rate=2000.0, preempted=True, unsteady=False, running_now=True),
        (128, 32.0): Cell(output_rate=800.0, preempted=True, unsteady=True, running_now=False),
    }
    shown = Lines(draw_sweep(cells, [(64, 8.0), (64, 16.0)], 60, 9)).plain.split("\n")
    assert re.findall(r"[\d,]+\S*|·", shown[1]) == ["64", "900★", "·"]
    assert re.findall(r"[\d,]+\S*|·", shown[3]) == ["128", "2,000▲…", "800▲~"]


def test_predictions_are_below_the_measurements_and_the_title_has_their_error(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    run = canned.finished()
    rates = [stage.request_rate for stage in run.config.stages]
    own = measured(frame_of(canned.finished(), 100.0).per_stage(), {})
    wanted = tuple(
        PredictedCell(max_num_seqs=canned.BATCH, request_rate=rate, output_throughput=rate_then * 1.1)
        for rate, rate_then in ((rate, own[canned.BATCH, rate].output_rate) for rate in rates[:3])
    )
    run.config = replace(run.config, predicted=wanted)
    frame = frame_of(run, 100.0)
    assert deviations(own, predicted(frame)) == pytest.approx([0.1, 0.1, 0.1])
    panel = SweepPanel(id="sweep")
    assert "prediction error 10.0 %" in Lines(panel.title(frame)).plain
    shown = Lines(panel.draw(frame, 90, 12)).plain.split("\n")
    found = [formats.count(each.output_throughput) for each in wanted]
    assert re.findall(r"≈([\d,.k]+)", shown[2]) == found
    assert "≈ predicted" in shown[-1]
    assert "≈" not in Lines(panel.draw(frame, 90, 5)).plain


def test_a_cell_is_marked_if_a_finished_stage_of_it_was_not_steady(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 100.0)
    cells = measured(frame.per_stage(), frame.steady)
    marked = {rate: cell.unsteady for (_, rate), cell in cells.items()}
    assert marked == {4.0: False, 8.0: False, 16.0: True, 20.0: False}  # the last one is still running
    assert frame.steady[3].reason.startswith("the load lasted 30 s, but a request takes")


def test_only_finished_stages_have_steady_windows(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.growing(50.0)
    assert list(frame_of(run, 50.0).steady) == [0]
    assert list(frame_of(canned.finished(), 50.0).steady) == [0, 1, 2, 3]
    run.stages = [replace(stage, warmup=stage.index == 0) for stage in run.stages]
    assert list(frame_of(run, 50.0).steady) == []


@pytest.mark.parametrize(("width", "height"), [(40, 9), (14, 4), (8, 2), (90, 30)])
def test_a_distribution_stays_in_its_box(width: int, height: int) -> None:
    drawn = draw_cdf([LogHistogram.of([0.02, 0.03, 1.5]), LogHistogram.of([])], width, height)
    assert len(drawn) <= height
    assert max(row_width(row) for row in drawn) <= width


def test_every_setting_is_shown_except_the_values_of_http_headers(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.config = replace(run.config, workload=WorkloadConfig(headers={"Authorization": "Bearer secret"}))
    shown = Lines(config_rows(frame_of(run, 60.0).header)).plain
    assert "headers.Authorization" in shown
    assert "secret" not in shown
    assert "4 req/s · batch 192" in shown
    assert "kv_blocks_total" in shown
    assert "True" not in shown
    assert "1800.0" not in shown


@pytest.mark.parametrize(("width", "height"), [(40, 9), (14, 4), (8, 2), (90, 30)])
def test_histograms_of_stages_stay_in_their_box(width: int, height: int) -> None:
    drawn = draw_ridgelines([LogHistogram.of([0.02, 0.03, 1.5]), LogHistogram.of([])], width, height, limit=0.5)
    assert len(drawn) <= height
    assert max(row_width(row) for row in drawn) <= width


def test_each_histogram_has_the_swatch_of_its_stage_and_the_objective_its_line() -> None:
    shown = Lines(draw_ridgelines([LogHistogram.of([0.02] * 9), LogHistogram.of([0.09])], 44, 5, limit=0.05)).plain
    first, base, second, again, axis = shown.split("\n")
    assert (base[:3], again[:3]) == ("⠤⠤⠤", "⠤⠤⠄")
    assert base.index("█") < base.index("┊") < again.index("█")
    assert base.index("┊") == again.index("┊") == first.index("┊") == second.index("┊")
    assert axis.split() == ["10ms", "32ms", "100ms"]


async def test_the_distributions_show_the_share_that_meets_the_objectives(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    run = canned.finished()
    run.config = replace(run.config, goodput={"ttft": 0.5, "e2el": 5.0})
    app = dashboard(run, start_at=126.0)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("3")
        newest, *_, older = rows(app, "#legend")[0].split("   ")
        assert newest.startswith("⠤⠤⠤ 20 req/s · batch 192 goodput 0.0–")
        assert older.startswith("⠤⠤⠄ 8 req/s · batch 192 goodput 100 %")
        assert any("┊" in row for row in rows(app, "#ttft"))
        assert not any("┊" in row for row in rows(app, "#itl"))


async def test_the_share_that_meets_the_ttfot_objective_is_beside_ttft(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    run = canned.finished()
    run.config = replace(run.config, goodput={"ttfot": 0.5})
    app = dashboard(run, start_at=126.0)
    async with app.run_test(size=(200, 48)) as pilot:
        await pilot.press("3")
        assert "TTFOT" in str(app.screen.query_one("#ttft").border_title)
        assert rows(app, "#legend")[0].startswith("⠤⠤⠤ 20 req/s · batch 192 goodput ")


async def test_a_small_screen_shows_curves_or_histograms_by_key(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        assert "100%┤" in rows(app, "#ttft")[0]
        await pilot.press("h")
        assert "100%┤" not in rows(app, "#ttft")[0]
        assert any("█" in row for row in rows(app, "#ttft"))


def test_a_dip_is_clearly_below_what_the_same_batch_size_did_at_a_lower_rate() -> None:
    done: dict[tuple[int | None, float], float]
    done = {(64, 4.0): 500.0, (64, 8.0): 900.0, (64, 16.0): 600.0, (64, 20.0): 880.0, (128, 16.0): 400.0}
    assert dips(done) == {(64, 16.0)}


POINTS = [
    Point(batch=64, rate=rate, throughput=throughput, latency=latency)
    for rate, throughput, latency in [
        (4, 400, 0.05),
        (8, 800, 0.05),
        (16, 1500, 0.06),
        (20, 1600, 4.0),
        (24, 1500, 9.0),
    ]
]


def test_the_pareto_front_is_what_nothing_else_beats_and_the_knee_where_latency_turns() -> None:
    assert pareto(POINTS) == {1, 2, 3}
    assert knees(POINTS) == {2}
    assert knees([replace(point, latency=0.05) for point in POINTS]) == set()


def test_the_curve_marks_front_and_knee_by_letters_and_symbols() -> None:
    shown = Lines(draw_scatter(POINTS, 80, 12)).plain
    assert (shown.count("A◇"), sum(line.count("A") for line in shown.split("\n")[:-1])) == (1, 3)
    assert shown.split("\n")[-1] == "batch a 64  CAPITAL Pareto front  ◇ knee"


@pytest.mark.parametrize(("width", "height"), [(40, 9), (14, 4), (8, 2), (150, 30)])
def test_the_curve_stays_in_its_box(width: int, height: int) -> None:
    drawn = draw_scatter(POINTS, width, height)
    assert len(drawn) <= height
    assert max(row_width(row) for row in drawn) <= width


async def test_a_plan_without_batch_sizes_has_the_measured_one(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(50.0)
    run.config = replace(run.config, stages=tuple(replace(stage, max_num_seqs=None) for stage in run.config.stages))
    app = dashboard(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        assert "–" not in "".join(rows(app, "#sweep"))


async def test_the_curve_gets_the_rows_that_the_matrix_does_not_need(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=1e6)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("4")
        await pilot.pause()
        sweep, curve = (app.screen.query_one(name) for name in ("#sweep", "#curve"))
        assert sweep.outer_size.height == 2 + 6  # one batch size
        assert curve.outer_size.height > 25


def test_marks_do_not_touch_the_next_cell_in_wide_columns() -> None:
    cell = Cell(output_rate=2560.0, preempted=True, unsteady=True, running_now=False)
    row = Lines(draw_sweep({(64, 8.0): cell, (64, 16.0): cell}, [], 60, 4)).plain.split("\n")[1]
    assert "▲~ " in row
    assert "★▲~ " in row
