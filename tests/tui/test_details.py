"""The screens behind the number keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.histogram import LogHistogram
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.distributions import draw_cdf, draw_ridgelines
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.detail.config import config_rows
from servetop.tui.panels.panel import Panel
from servetop.tui.screens.details import ConfigScreen, DistributionsScreen, SweepScreen
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.log_screen import LogScreen
from servetop.tui.state.frame import Frame

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
