"""Selecting and maximising a panel, by key and by mouse."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from servetop.tui.app import DashboardApp

Dashboard = Callable[..., DashboardApp]


def shown(app: DashboardApp) -> list[str]:
    return [panel.id or "" for panel in app.screen.query("#panels > Panel") if panel.display]


def chosen(app: DashboardApp) -> str | None:
    return None if app.focused is None else app.focused.id


async def test_tab_cycles_through_the_panels(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(120, 40)) as pilot:
        assert chosen(app) is None
        ids = []
        for key in ("tab", "tab", "shift+tab", "shift+tab"):
            await pilot.press(key)
            ids.append(chosen(app))
        assert ids == ["load", "throughput", "load", "log"]
        await pilot.press("escape")
        assert chosen(app) is None


async def test_a_selected_panel_is_marked_by_its_frame_not_by_colour_alone(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(120, 40)) as pilot:
        for theme in ("textual-dark", "ansi-dark"):
            app.theme = theme
            for _ in range(8):
                await pilot.press("tab")
                frames = {panel.id: panel.styles.border_top[0] for panel in app.screen.query("#panels > Panel")}
                assert [name for name, frame in frames.items() if frame == "heavy"] == [chosen(app)]


async def test_enter_maximises_and_escape_restores_the_grid(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        before = {panel.id: panel.region for panel in app.screen.query("#panels > Panel")}
        await pilot.press("tab", "tab", "enter")
        assert shown(app) == ["throughput"]
        assert app.screen.query_one("#throughput").region.size == (120, 36)
        for name in ("#header", "#diagnosis", "#status", "#keys"):
            assert app.screen.query_one(name).display
        await pilot.press("escape")
        await pilot.pause()
        assert {panel.id: panel.region for panel in app.screen.query("#panels > Panel")} == before
        assert chosen(app) == "throughput"
        await pilot.press("enter", "enter")
        await pilot.pause()
        assert {panel.id: panel.region for panel in app.screen.query("#panels > Panel")} == before


async def test_tab_maximises_the_next_panel(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        assert shown(app) == ["load"]
        await pilot.press("tab")
        await pilot.pause()
        assert shown(app) == ["throughput"]


async def test_escape_restores_the_grid_before_it_removes_the_cursor(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("c", "enter", "escape")
        assert len(shown(app)) > 1
        assert app.viewer.view.cursor is not None
        await pilot.press("escape")
        assert app.viewer.view.cursor is None


async def test_a_click_selects_and_a_double_click_maximises_or_restores(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.click("#queue", offset=(3, 1))
        assert chosen(app) == "queue"
        assert len(shown(app)) > 1
        await pilot.double_click("#trust", offset=(3, 1))
        assert shown(app) == ["trust"]
        await pilot.double_click("#trust", offset=(3, 1))
        assert len(shown(app)) > 1
