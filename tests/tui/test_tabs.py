"""The row of tabs, the verdict and the keys of the screens behind the number keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.tui.app import DashboardApp
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.keys import TABS, screen_line
from servetop.tui.panels.footer import draw_screen_line
from servetop.tui.panels.panel import Panel
from servetop.tui.panels.tabs import draw_tabs, tab_at
from servetop.tui.screens.log_screen import LogScreen
from servetop.tui.screens.requests_screen import RequestScreen
from servetop.tui.state.frame import Frame

Dashboard = Callable[..., DashboardApp]
FrameOf = Callable[..., Frame]
BEHIND = TABS[1:]


def row(app: DashboardApp, selector: str) -> str:
    """The only row of a line of the top screen."""
    return app.screen.query_one(selector, Panel).render().plain


@pytest.mark.parametrize("tab", BEHIND, ids=[tab.screen for tab in BEHIND])
async def test_every_screen_behind_a_digit_has_tabs_the_verdict_and_its_keys(
    canned: ModuleType, dashboard: Dashboard, tab: object
) -> None:
    (shown,) = [each for each in BEHIND if each is tab]
    app = dashboard(canned.growing(110.0))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(shown.digit)
        assert f"▸{shown.digit} {shown.title}" in row(app, "#tabs")
        assert row(app, "#tabs").count("▸") == 1
        assert "KV-bound" in row(app, "#diagnosis")
        assert row(app, "#keys").rstrip().endswith("esc back  ? help  q quit")
        assert "axis" not in row(app, "#keys")


def test_tabs_fit_80_columns_and_are_shortened_equally_below() -> None:
    (wide,) = (Lines([[run for part in draw_tabs(TABS, "sweep", 78) for run in part]]).plain,)
    assert all(f"{tab.digit} {tab.title}" in wide for tab in TABS)
    narrow = draw_tabs(TABS, "sweep", 60)
    assert sum(row_width(part) for part in narrow) <= 60
    assert "▸4 Sweep" in Lines(narrow).plain
    assert "…" in Lines(narrow).plain


def test_the_tab_at_a_column_is_the_one_drawn_there() -> None:
    parts = draw_tabs(TABS, "live", 100)
    start = sum(row_width(part) for part in parts[:3])
    assert (tab_at(parts, start - 1), tab_at(parts, start)) == (TABS[2].screen, TABS[3].screen)
    assert tab_at(parts, 99) is None


async def test_a_click_on_a_tab_shows_its_screen(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("2", "enter")
        assert isinstance(app.screen, RequestScreen)
        await pilot.click("#tabs", offset=(row(app, "#tabs").index("5 Log") + 1, 0))
        await pilot.pause()
        assert isinstance(app.screen, LogScreen)
        assert len(app.screen_stack) == 2


def test_a_screens_own_keys_hide_the_shared_meaning_of_the_same_keys() -> None:
    keys = dict(screen_line((("m", "more"), ("← →", "columns")), steering=True))
    assert (keys["m"], keys["← →"]) == ("more", "columns")
    assert keys["space"] == "hold"
    assert dict(screen_line((), steering=False))["space"] == "play/pause"


def test_a_message_leaves_room_for_help_and_the_time_axis(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 60.0)
    frame = replace(frame, view=replace(frame.view, message="a long message " * 9))
    drawn = Lines([draw_screen_line(frame, (("h", "ridges"),), 80, time_axis=True)]).plain
    assert len(drawn) == 80
    assert drawn.startswith("▸ a long message a long")
    assert drawn.endswith("axis 2:00   esc back  ? help  q quit")
