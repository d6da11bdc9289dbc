"""The row of tabs, the verdict and the keys of the screens behind the number keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.tui.app import DashboardApp
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.keys import TABS, Tab, screen_line
from servetop.tui.panels.footer import draw_screen_line, draw_status, status_tabs
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
        assert ("axis" in row(app, "#keys")) == (shown.screen == "engine")


def drawn(tabs: Sequence[Tab], shown: str, width: int) -> str:
    """The row of tabs."""
    return Lines([[run for part in draw_tabs(tabs, shown, width) for run in part]]).plain


def test_tabs_are_abbreviated_only_if_there_is_no_room() -> None:
    assert all(f"{tab.digit} {tab.title}" in drawn(TABS, "sweep", 120) for tab in TABS)
    for tab in TABS:
        row = drawn(TABS, tab.screen, 78)
        assert len(row) <= 78
        assert f"▸{tab.digit} {tab.title[:5]}" in row
        assert "1 Overview" in row
        assert "…" not in row
    assert "3 Distri." in drawn(TABS, "sweep", 78)


@given(st.integers(1, 130), st.sampled_from([tab.screen for tab in TABS]))
def test_the_shown_tab_is_marked_at_every_width_and_the_row_fits_from_60_columns_on(width: int, shown: str) -> None:
    row = drawn(TABS, shown, width)
    assert row.count("▸") == 1
    assert len(row) <= max(width, 58)


def test_the_tab_at_a_column_is_the_one_drawn_there() -> None:
    parts = draw_tabs(TABS, "live", 100)
    start = sum(row_width(part) for part in parts[:3])
    assert (tab_at(parts, start - 1), tab_at(parts, start)) == (TABS[2].screen, TABS[3].screen)
    assert tab_at(parts, 99) is None


async def test_a_click_on_a_tab_shows_its_screen(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.click("#status", offset=(row(app, "#status").index("5 Log") + 1, 0))
        await pilot.pause()
        assert isinstance(app.screen, LogScreen)
        await pilot.press("2", "enter")
        assert isinstance(app.screen, RequestScreen)
        await pilot.click("#tabs", offset=(row(app, "#tabs").index("5 Log") + 1, 0))
        await pilot.pause()
        assert isinstance(app.screen, LogScreen)
        assert len(app.screen_stack) == 2


def test_the_overview_has_its_tabs_beside_the_time_axis_unless_there_is_a_message(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    frame = frame_of(canned.finished(), 60.0)
    assert Lines([draw_status(frame, 140)]).plain.startswith("▸1 Overview   2 Requests   3 Distributions")
    assert len(Lines([draw_status(frame, 120)]).plain) == 120
    assert Lines([draw_status(frame, 78)]).plain.strip() == "axis 1:00, grows to 2:00"  # no room for all tabs
    told = replace(frame, view=replace(frame.view, message="paused"))
    assert "Overview" not in Lines([draw_status(told, 120)]).plain
    assert status_tabs(told, 120) == []


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
    assert drawn.endswith("axis 1:00   esc back  ? help  q quit")
