"""Seeking: to a typed time, to events, and by mouse on the timeline."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.errors import UsageError
from servetop.tui.app import DashboardApp
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.question import TimeQuestion
from servetop.tui.state.time_input import next_event_time, parse_time

Dashboard = Callable[..., DashboardApp]
Growing = tuple[Any, DashboardApp]
TextOf = Callable[[DashboardApp, str], str]


@pytest.mark.parametrize(
    ("text", "at"),
    [("90", 90), ("1:30", 90), ("0:01:30", 90), (" 2.5 ", 2.5), ("50%", 100), ("100 %", 200), ("0", 0),
     ("9:59:59", 200)],
)  # fmt: skip
def test_times_are_parsed_as_users_write_them(text: str, at: float) -> None:
    assert parse_time(text, edge=200.0) == at


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "1:75", "1:2:3:4", "1e3", "nan", "inf", "%", "1:", ":1", "٣", "1_0"]
)
def test_an_invalid_time_is_reported_on_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="use 90, 1:30") as caught:
        parse_time(text, edge=200.0)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=12), st.floats(0, 1e6))
def test_any_text_is_a_time_of_the_run_or_rejected(text: str, edge: float) -> None:
    with contextlib.suppress(UsageError):
        assert 0 <= parse_time(text, edge=edge) <= edge


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_a_formatted_time_is_parsed_back(hours: int, minutes: int, seconds: int) -> None:
    assert parse_time(f"{hours}:{minutes:02d}:{seconds:02d}", edge=1e9) == hours * 3600 + minutes * 60 + seconds


def test_the_next_event_is_never_where_the_playhead_already_is() -> None:
    events = (6.0, 36.0, 40.0)
    assert next_event_time(events, 36.05, direction=1) == 40.0
    assert next_event_time(events, 36.05, direction=-1) == 6.0
    assert next_event_time(events, 40.0, direction=1) is None


async def test_g_asks_for_a_time_and_goes_there(canned: ModuleType, dashboard: Dashboard, text_of: TextOf) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("g")
        assert isinstance(app.screen, TimeQuestion)
        await pilot.press(*"1:10", "enter")
        assert text_of(app, "#header").endswith("00:01:10 ‖ replay ×1")
        await pilot.press("g", *"50%", "enter")
        assert text_of(app, "#header").endswith("00:01:03 ‖ replay ×1")


async def test_an_invalid_time_is_reported_and_asked_for_again(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    async with app.run_test() as pilot:
        await pilot.press("g", *"[b]x", "enter")
        assert isinstance(app.screen, TimeQuestion)
        assert "invalid time '[b]x'" in str(app.screen.query_one(".hint").render())
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)
        assert app.viewer.view.playhead.at == 60.0


async def test_brackets_go_from_event_to_event_of_a_finished_run(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    async with app.run_test() as pilot:
        places = []
        for key in ("]", "]", "[", "[", "[", "[", "["):
            await pilot.press(key)
            places.append(app.viewer.view.playhead.at)
        assert places == [66.0, 72.0, 66.0, 40.0, 36.0, 6.0, 6.0]
        assert "no event before this time" in text_of(app, "#status")


async def test_brackets_steer_at_the_live_edge_and_seek_in_the_past(growing: Growing) -> None:
    run, app = growing
    async with app.run_test() as pilot:
        await pilot.press("[")
        assert len(run.sent) == 1
        await pilot.press("left", "[")
        assert len(run.sent) == 1
        assert app.viewer.view.playhead.at == 104.25  # the queue is detected


async def test_a_click_on_the_timeline_seeks(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    async with app.run_test(size=(160, 48)) as pilot:
        width = app.screen.query_one("#timeline").size.width
        await pilot.click("#timeline", offset=(2 + width // 4, 1))
        assert app.viewer.view.playhead.at == pytest.approx(126.0 * (width // 4) / (width - 1))
        await pilot.click("#timeline", offset=(2 + width - 1, 1))
        assert app.viewer.view.playhead.at == 126.0


async def test_a_click_on_the_right_end_of_the_timeline_follows_a_live_run(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("left")
        width = app.screen.query_one("#timeline").size.width
        await pilot.click("#timeline", offset=(2 + width - 1, 1))
        assert app.viewer.view.playhead.following
