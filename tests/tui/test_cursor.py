"""The cursor: its column, its values, and its movement."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from hypothesis import given
from hypothesis import strategies as st

from servetop.tui.app import DashboardApp
from servetop.tui.drawing.cursor import MARK, Cursor, column_of, crossed, time_at_column
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.frame import Frame

Dashboard = Callable[..., DashboardApp]
TextOf = Callable[[DashboardApp, str], str]
CHARTS = ("load", "throughput", "latency", "heat", "kv", "queue", "preemptions")


@given(st.integers(1, 200), st.integers(0, 199), st.floats(10, 1e5))
def test_the_time_of_a_cell_is_drawn_in_that_cell(width: int, column: int, start: float) -> None:
    at = time_at_column(column, (start, start + 120.0), width)
    assert (at is None) == (column >= width)
    if at is not None:
        assert column_of(at, (start, start + 120.0), width) == column


def test_a_time_outside_of_the_axis_has_no_column() -> None:
    assert column_of(9.9, (10.0, 20.0), 10) is None
    assert column_of(20.1, (10.0, 20.0), 10) is None
    assert time_at_column(-1, (10.0, 20.0), 10) is None
    assert time_at_column(0, (-100.0, 20.0), 10) is None


def test_the_mark_replaces_one_cell_of_a_run() -> None:
    row = [("abc", "sky"), ("def", "rose")]
    assert crossed(row, 0) == [(MARK, "cursor"), ("bc", "sky"), ("def", "rose")]
    assert crossed(row, 4) == [("abc", "sky"), ("d", "rose"), (MARK, "cursor"), ("f", "rose")]
    assert crossed(row, 6) == crossed(row, None) == row


def test_a_cursor_moves_by_bins_of_the_axis_and_stays_on_it() -> None:
    cursor = Cursor(at=100.0)
    assert cursor.moved(-1, window=(0.0, 120.0), bins=120) == Cursor(at=99.0, follows_mouse=False)
    assert cursor.moved(50, window=(0.0, 120.0), bins=120).at == 120.0
    assert cursor.moved(-1, window=(110.0, 140.0), bins=120).at == 110.0
    assert Cursor(at=1.0).moved(-5, window=(-60.0, 60.0), bins=120).at == 0.0


def test_a_cursor_does_not_move_beyond_the_newest_data() -> None:
    assert Cursor(at=20.0).moved(50, window=(6.0, 66.0), bins=120, newest=42.0).at == 42.0


def test_values_are_those_at_the_cursor_and_charts_do_not_move(
    canned: ModuleType, frame_of: Callable[..., Frame]
) -> None:
    there = frame_of(canned.finished(), 60.0)
    pointed = frame_of(canned.finished(), 110.0, cursor=Cursor(at=60.0))
    now = frame_of(canned.finished(), 110.0)
    assert pointed.cursor == 60.0
    assert (pointed.stats.rates, pointed.stats.engine, pointed.stats.latencies) == (
        there.stats.rates,
        there.stats.engine,
        there.stats.latencies,
    )
    assert pointed.stats.series.times.tolist() == now.stats.series.times.tolist()
    assert pointed.window == now.window
    assert frame_of(canned.finished(), 50.0, cursor=Cursor(at=60.0)).cursor == 50.0


async def test_the_cursor_key_marks_a_column_of_every_chart_and_escape_removes_it(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(160, 48)) as pilot:
        before = {name: text_of(app, f"#{name}") for name in CHARTS}
        await pilot.press("c", *["shift+left"] * 5)
        for name in CHARTS:
            panel = app.screen.query_one(f"#{name}", TimeChart)
            assert panel.frame is not None
            left = panel.left_of_chart(panel.frame)
            column = left + (column_of(60.0, (6.0, 126.0), panel.size.width - left) or 0)
            rows = text_of(app, f"#{name}").split("\n")[6:-1]
            assert {row[column] for row in rows} == {MARK}, name
            assert sum(row[left:].count(MARK) for row in rows) == len(rows), name
            assert "│ 00:01:00" in str(panel._border_subtitle), name
        assert "│ 00:01:00 −0:50" in text_of(app, "#status")
        assert text_of(app, "#header").endswith("00:01:50 ▶ replay ×1")
        await pilot.press("escape")
        assert {name: text_of(app, f"#{name}") for name in CHARTS} == before


async def test_arrows_move_the_cursor_while_it_is_shown_and_seek_while_it_is_not(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("c", "left", "left", "right")
        assert app.viewer.view.cursor == Cursor(at=109.0, follows_mouse=False)
        assert app.viewer.view.playhead.at == 110.0
        await pilot.press("c", "left")
        assert app.viewer.view.cursor is None
        assert app.viewer.view.playhead.at == 105.0


async def test_the_timeline_shows_the_cursor(canned: ModuleType, dashboard: Dashboard, text_of: TextOf) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(160, 48)) as pilot:
        assert MARK not in text_of(app, "#timeline")
        await pilot.press("c", *["shift+left"] * 5)
        lines = text_of(app, "#timeline").split("\n")
        assert lines[-1].index(MARK) == int(60.0 / 126.0 * len(lines[-1]))


async def test_a_click_sets_the_cursor_which_otherwise_follows_the_mouse(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(160, 48)) as pilot:
        canvas = app.screen.query_one("#load").size.width - 6
        await pilot.hover("#load", offset=(2 + 6 + 30, 5))
        assert app.viewer.view.cursor is None
        await pilot.click("#load", offset=(2 + 6 + canvas - 2, 5))
        assert app.viewer.view.cursor is None  # right of the newest data
        await pilot.click("#load", offset=(2 + 6 + 30, 5))
        clicked = time_at_column(30, (6.0, 126.0), canvas) or 0.0
        assert app.viewer.view.cursor == Cursor(at=clicked, follows_mouse=False)
        await pilot.hover("#load", offset=(2 + 6 + 20, 5))
        assert app.viewer.view.cursor == Cursor(at=clicked, follows_mouse=False)
        await pilot.press("c", "c")
        await pilot.hover("#load", offset=(2 + 6 + 25, 5))
        assert app.viewer.view.cursor == Cursor(at=time_at_column(25, (6.0, 126.0), canvas) or 0.0)


async def test_the_plots_of_a_column_of_panels_share_both_edges(canned: ModuleType, dashboard: Dashboard) -> None:
    for size in ((160, 48), (220, 60)):
        async with (app := dashboard(canned.finished(), start_at=110.0)).run_test(size=size):
            edges = set()
            for name in CHARTS:
                panel = app.screen.query_one(f"#{name}", TimeChart)
                assert panel.frame is not None
                region = panel.content_region
                edges.add((region.x + panel.left_of_chart(panel.frame), region.right))
            assert len(edges) == (3 if size[0] == 160 else 4)


async def test_the_wheel_zooms_the_time_axis_and_stops_at_its_ends(canned: ModuleType, dashboard: Dashboard) -> None:
    from textual import events

    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(160, 48)) as pilot:
        spans = []
        for kind in (events.MouseScrollUp, events.MouseScrollUp, *[events.MouseScrollDown] * 4):
            await pilot._post_mouse_events([kind], "#load", offset=(20, 4))
            spans.append(app.viewer.view.span)
        assert spans == [30.0, 30.0, 120.0, 600.0, 0.0, 0.0]
