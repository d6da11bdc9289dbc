"""The sweep screen: which stages are comparable, the matrix and the throughput-latency curve."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from servetop.core.config_values.predicted_cell import PredictedCell
from servetop.core.histogram import LogHistogram
from servetop.core.text import formats
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.scale import log_ticks
from servetop.tui.drawing.scatter import Point, draw_scatter, knees, lines, pareto
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.detail.sweep import CurvePanel, SweepPanel, _point, draw_sweep
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import METRICS
from servetop.tui.state.sweep_cells import Cell, Load, MatrixPlace, dips, measured, others
from servetop.tui.state.sweep_predictions import deviations, predicted
from servetop.tui.state.sweep_table import SweepTable

Dashboard = Callable[..., DashboardApp]
FrameOf = Callable[..., Frame]


def rows(app: DashboardApp, selector: str) -> list[str]:
    """The rows of a panel of the top screen."""
    return app.screen.query_one(selector, Panel).render().plain.split("\n")


def cell(rate: float, **changes: Any) -> Cell:
    """A cell with one request of each latency of a second."""
    histograms = {metric: LogHistogram.of([1.0]) for metric in METRICS}
    known = {"preempted": False, "unsteady": False, "running_now": False}
    return Cell(output_rate=rate, histograms=histograms, **(known | changes))


def text(table: SweepTable, width: int, height: int) -> list[str]:
    """The rows of the drawn table."""
    return Lines(draw_sweep(table, width, height)).plain.split("\n")


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


def test_repeats_of_a_cell_are_averaged_and_warm_ups_left_out(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.stages = [
        replace(stage, request_rate=stage.request_rate and 8.0, warmup=stage.index == 0) for stage in run.stages
    ]
    frame = frame_of(run, 126.0)
    figures = [each for each in frame.per_stage() if each not in [one.stage for one in others(frame)]]
    ((key, found),) = measured(frame).items()
    assert key == (192, Load(8.0))
    assert found.repeats == len(figures) > 1
    assert found.output_rate == pytest.approx(sum(each.output_rate for each in figures) / len(figures))
    assert found.histograms["ttft"].count == sum(each.histograms["ttft"].count for each in figures)


def test_a_ramp_and_a_stage_with_a_backlog_are_no_cells(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    plan = list(run.config.stages)
    run.config = replace(run.config, stages=(plan[0], replace(plan[1], ramp_from=4.0), *plan[2:]))
    run.stages = [replace(row, ramp_from=4.0 if row.index == 1 else None) for row in run.stages]
    last = run.stages[-1].at
    run.ticks = [
        replace(tick, engine=replace(tick.engine, waiting=31)) if abs(tick.start - last) < 1 else tick
        for tick in run.ticks
    ]
    frame = frame_of(run, 126.0)
    assert [load.name for _, load in measured(frame)] == ["4", "16"]
    assert [(each.stage.stage.index, each.reason) for each in others(frame)] == [
        (1, "ramp"), (3, "after overload: 31 were waiting at its start"),
    ]  # fmt: skip
    shown = text(SweepTable.of(frame), 90, 12)
    assert any("after overload" in row for row in shown)
    assert shown[0].split() == ["batch", "4", "16"]


def test_a_rate_that_was_changed_by_key_makes_a_stage_no_cell(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    ticks = [
        replace(tick, client=replace(tick.client, gauges=replace(tick.client.gauges, request_rate=5.0)))
        if 20.0 < tick.start < 36.0
        else tick
        for tick in run.ticks
    ]
    run.ticks = ticks
    assert [each.reason for each in others(frame_of(run, 60.0))] == ["rate not constant: 4 to 5"]


def test_time_without_requests_after_a_stage_does_not_lower_its_throughput(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    before = frame_of(canned.finished(), 60.0).per_stage()[0].output_rate
    run = canned.finished()
    idle = [
        replace(tick, client=replace(tick.client, output_tokens=0, gauges=replace(tick.client.gauges, in_flight=0)))
        if 21.0 <= tick.start < 36.0
        else tick
        for tick in run.ticks
    ]
    run.ticks = idle
    after = frame_of(run, 60.0).per_stage()[0].output_rate
    assert after == pytest.approx(before, rel=0.1)


@pytest.mark.parametrize(
    ("load", "name"),
    [(Load(8.0), "8"), (Load(0.5), "0.5"), (Load(8.0, 64), "8·c64"), (Load(float("inf"), 64), "c64"),
     (Load(float("inf")), "∞")],
)  # fmt: skip
def test_loads_have_short_names(load: Load, name: str) -> None:
    assert load.name == name


def test_only_a_finished_cell_is_the_peak_and_unplanned_cells_stay_blank() -> None:
    cells: dict[MatrixPlace, Cell] = {
        (64, Load(8.0)): cell(900.0),
        (128, Load(16.0)): cell(2000.0, preempted=True, running_now=True),
        (128, Load(32.0)): cell(800.0, preempted=True, unsteady=True),
    }
    shown = text(SweepTable(cells=cells, planned=[(64, Load(8.0)), (64, Load(16.0))]), 60, 9)
    assert re.findall(r"[\d,]+\S*|·", shown[1]) == ["64", "900★", "·"]
    assert re.findall(r"[\d,]+\S*|·", shown[3]) == ["128", "2,000▲…", "800▲~"]
    assert re.findall(r"\S+s", shown[4]) == ["992ms", "992ms"]


def test_a_cell_without_any_output_is_no_peak() -> None:
    failed = SweepTable(cells={(64, Load(8.0)): cell(0.0)})
    assert "★" not in "".join(text(failed, 60, 9))


def test_headings_end_above_the_last_digit_of_their_column() -> None:
    cells: dict[MatrixPlace, Cell] = {(64, Load(rate)): cell(rate * 100) for rate in (4.0, 8.0, 16.0)}
    for width in (50, 80, 200):
        head, row, *_ = text(SweepTable(cells=cells), width, 9)
        ends = [match.end() for match in re.finditer(r"[\d,]+", row)][1:]
        assert [match.end() for match in re.finditer(r"\d+", head)] == ends


def test_predictions_are_below_the_measurements_and_the_title_has_their_error(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    run = canned.finished()
    rates = [stage.request_rate for stage in run.config.stages]
    own = measured(frame_of(canned.finished(), 100.0))
    wanted = tuple(
        PredictedCell(max_num_seqs=canned.BATCH, request_rate=rate, output_throughput=rate_then * 1.1)
        for rate, rate_then in ((rate, own[canned.BATCH, Load(rate)].output_rate) for rate in rates[:3])
    )
    run.config = replace(run.config, predicted=wanted)
    frame = frame_of(run, 100.0)
    assert deviations(own, predicted(frame)) == pytest.approx([0.1, 0.1, 0.1])
    panel = SweepPanel(id="sweep")
    assert "prediction error 10.0 %" in Lines(panel.title(frame)).plain
    shown = Lines(panel.draw(frame, 90, 12)).plain.split("\n")
    found = [formats.count(each.output_throughput) for each in wanted]
    assert re.findall(r"≈([\d,.k]+)", shown[3]) == found
    assert "≈ predicted" in shown[-1]
    assert "≈" not in Lines(panel.draw(frame, 90, 4)).plain


def test_a_cell_is_marked_if_a_finished_stage_of_it_was_not_steady(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 100.0)
    marked = {load.rate: each.unsteady for (_, load), each in measured(frame).items()}
    assert marked == {4.0: False, 8.0: False, 16.0: True, 20.0: False}  # the last one is still running
    assert frame.steady[3].reason.startswith("the load lasted 30 s, but a request takes")


def test_a_dip_is_clearly_below_what_the_same_batch_size_did_at_a_lower_rate() -> None:
    done: dict[MatrixPlace, float] = {
        (64, Load(4.0)): 500.0, (64, Load(8.0)): 900.0, (64, Load(16.0)): 600.0, (64, Load(20.0)): 880.0,
        (128, Load(16.0)): 400.0,
    }  # fmt: skip
    assert dips(done) == {(64, Load(16.0))}


POINTS = [
    Point(batch=64, order=rate, label=f"{rate}", throughput=throughput, latency=latency)
    for rate, throughput, latency in [
        (4, 400, 0.05), (8, 800, 0.05), (16, 1500, 0.06), (20, 1600, 4.0), (24, 1500, 9.0),
    ]
]  # fmt: skip


def test_the_pareto_front_is_what_nothing_else_beats_and_the_knee_where_latency_turns() -> None:
    assert pareto(POINTS) == {1, 2, 3}
    assert knees(POINTS) == {2}
    assert knees([replace(point, latency=0.05) for point in POINTS]) == set()


def test_the_curve_connects_labelled_points_and_marks_front_and_knee() -> None:
    *plot, axis, legend = Lines(draw_scatter(POINTS, 80, 14, latency="TTFT p99")).plain.split("\n")
    assert (sum(row.count("●") for row in plot), sum(row.count("○") for row in plot)) == (3, 2)
    assert all(any(f" {label}" in row for row in plot) for label in ("4", "8", "16 knee", "20", "24"))
    assert any(re.search("[⠁-⣿]", row) for row in plot)
    assert plot[0].startswith("TTFT p99")
    assert axis.split() == ["0", "500", "1,000", "1,500", "2,000", "tok/s"]
    assert legend == "batch ● 64  hollow: another cell has more tok/s at less latency"


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.021, 0.19, [0.02, 0.05, 0.1, 0.2]), (0.05, 9.0, [0.01, 0.1, 1.0, 10.0]),
     (1.0, 1.0, [1.0, 2.0])],
)  # fmt: skip
def test_a_logarithmic_axis_has_a_few_round_ticks_around_the_data(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high, most=5) == pytest.approx(ticks)


@pytest.mark.parametrize(("width", "height"), [(40, 9), (14, 4), (8, 2), (150, 30)])
def test_the_curve_stays_in_its_box(width: int, height: int) -> None:
    drawn = draw_scatter(POINTS, width, height, latency="TTFT p99")
    assert len(drawn) <= height
    assert max(row_width(row) for row in drawn) <= width


async def test_a_plan_without_batch_sizes_has_the_measured_one(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(50.0)
    run.config = replace(run.config, stages=tuple(replace(stage, max_num_seqs=None) for stage in run.config.stages))
    app = dashboard(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        assert "–" not in "".join(rows(app, "#sweep"))


def test_a_run_with_one_load_says_what_a_sweep_is_and_how_to_run_one(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.config = replace(run.config, stages=run.config.stages[:1])
    panel, frame = CurvePanel(id="curve"), frame_of(run, 30.0)
    for width, height in ((78, 12), (200, 40), (56, 5)):
        rows = panel.draw(frame, width, height)
        assert len(rows) <= height
        assert max(row_width(row) for row in rows) <= width
        shown = " ".join(Lines(rows).plain.split())
        assert "One constant load only" in shown
        assert "servetop sweep --example > grid.toml" in shown


def test_an_ended_run_with_one_cell_has_no_chart_even_if_more_were_planned(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    run = canned.finished()
    frame = frame_of(run, 20.0)
    panel = CurvePanel(id="curve")
    assert "One constant load only" not in Lines(panel.draw(frame, 78, 12)).plain
    assert "One constant load only" in Lines(panel.draw(replace(frame, end=run.end), 78, 12)).plain


async def test_the_curve_gets_the_rows_that_the_matrix_does_not_need(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=1e6)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("4")
        await pilot.pause()
        sweep, curve = (app.screen.query_one(name) for name in ("#sweep", "#curve"))
        assert sweep.outer_size.height == 2 + 5  # one batch size
        assert curve.outer_size.height > 25


def test_marks_do_not_touch_the_next_cell_in_wide_columns() -> None:
    both = cell(2560.0, preempted=True, unsteady=True)
    row = text(SweepTable(cells={(64, Load(8.0)): both, (64, Load(16.0)): both}), 60, 4)[1]
    assert "▲~ " in row
    assert "★▲~ " in row


def test_cells_of_other_settings_are_in_rows_and_lines_of_their_own() -> None:
    loads = [Load(rate, settings=settings) for settings in ("in 512", "in 64") for rate in (4.0, 8.0)]
    cells: dict[MatrixPlace, Cell] = {(8, load): cell(100.0 * (number + 1)) for number, load in enumerate(loads)}
    table = SweepTable(cells=cells, planned=list(cells))
    assert table.rows == [("in 512", 8), ("in 64", 8)]
    assert table.loads == [Load(4.0), Load(8.0)]
    drawn = ["".join(text for text, _ in row) for row in draw_sweep(table, 60, 12)]
    assert [row.split("·")[0].strip() for row in drawn if "in " in row] == ["in 512", "in 64"]
    points = [_point(key, each, "ttft") for key, each in cells.items()]
    assert list(lines(points)) == ["in 512 · 8", "in 64 · 8"]


def test_a_dip_is_one_of_its_own_row() -> None:
    done: dict[MatrixPlace, float] = {(8, Load(4.0, settings="in 64")): 100.0, (8, Load(8.0, settings="in 512")): 50.0}
    assert dips(done) == set()
    done[(8, Load(4.0, settings="in 512"))] = 60.0
    assert dips(done) == {(8, Load(8.0, settings="in 512"))}
