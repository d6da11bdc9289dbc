"""The dashboard at every terminal size, during start-up, and without input."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from servetop.core.events import Note, Severity
from servetop.tui.app import DashboardApp

Dashboard = Callable[..., DashboardApp]
Growing = tuple[Any, DashboardApp]
TextOf = Callable[[DashboardApp, str], str]


async def test_a_terminal_that_is_too_small_shows_a_message_and_recovers(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    async with app.run_test(size=(59, 16)) as pilot:
        assert app.screen.query_one("#too-small").display
        assert not app.screen.query_one("#panels").display
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert app.screen.query_one("#panels").display
        assert not app.screen.query_one("#too-small").display
        await pilot.resize_terminal(80, 15)
        await pilot.pause()
        assert not app.screen.query_one("#panels").display


async def test_a_long_error_leaves_the_log_a_line_on_a_small_terminal(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(110.0)
    run.notes = [Note(at=109.0, severity=Severity.ERROR, source="engine", text="the engine reports an error " * 9)]
    app = dashboard(run)
    async with app.run_test(size=(80, 24)):
        assert app.screen.query_one("#alert").outer_size.height == 3
        assert app.screen.query_one("#log").size.height == 1
        assert app.screen.query_one("#latency").size.height == 3


def regions_of(app: DashboardApp) -> list[object]:
    return [(panel.id, panel.display, panel.region) for panel in app.screen.query("#panels > Panel")]


async def test_no_panel_is_left_without_room_at_any_size(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(60, 16)) as pilot:
        for size in [
            (60, 16),
            (80, 24),
            (100, 22),
            (100, 23),
            (120, 40),
            (99, 60),
            (180, 24),
            (160, 48),
            (200, 60),
            (240, 18),
        ]:
            await pilot.resize_terminal(*size)
            before: list[object] = []
            while (app.screen.size, regions := regions_of(app)) != (size, before):  # laid out, and still
                before = regions
                await pilot.pause()
            for panel in app.screen.query("#panels > Panel"):
                if panel.display:
                    assert panel.size.height >= 1, (size, panel.id)
                    assert panel.size.width >= 12, (size, panel.id)
                    assert panel.region.bottom <= size[1] - 2, (size, panel.id)


async def test_the_log_fills_the_screen_while_the_engine_starts_and_the_error_follows(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    app = dashboard(canned.booting())
    async with app.run_test(size=(120, 40)):
        assert [panel.id for panel in app.screen.query("#panels > Panel") if panel.display] == ["log"]
        assert "starting vllm 3 s, timeout 30 min" in text_of(app, "#log")
    failed = dashboard(canned.failed_to_start(), start_at=4.0)
    async with failed.run_test(size=(120, 40)):
        assert not failed.screen.query_one("#alert").display
        assert "try --gpu-memory-utilization 0.8" in " ".join(text_of(failed, "#story").split())
        assert text_of(failed, "#header").endswith("✖ failed (3)")


async def test_a_machine_without_a_gpu_has_no_gpu_panel(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.without_metrics(), start_at=60.0)
    async with app.run_test(size=(120, 40)):
        assert not app.screen.query_one("#gpu").display


async def test_the_dashboard_polls_and_draws_by_itself(growing: Growing, text_of: TextOf) -> None:
    run, app = growing
    async with app.run_test(size=(120, 30)):
        run.now = 112.5
        async with asyncio.timeout(60):
            while "00:01:52" not in text_of(app, "#header"):
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_every_screen_can_be_drawn_from_the_first_tick_on(
    canned: ModuleType, dashboard: Dashboard, size: tuple[int, int]
) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=size) as pilot:
        for screen in ("1", "3", "4", "6", "7"):
            await pilot.press(screen, "home", *["."] * 12)
        assert app.is_running
