"""The requests screen: rows at a time, their order, bars and tokens."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from types import ModuleType

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from servetop.core.events import RequestRecord, RequestStatus
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.detail.request_timeline import draw_request
from servetop.tui.panels.detail.requests import RequestsPanel, axis_length, time_axis
from servetop.tui.panels.detail.tokens import TokensPanel
from servetop.tui.panels.live.latency_heat import HeatPanel
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.requests_screen import RequestScreen, RequestsScreen
from servetop.tui.state.frame import MOST_REQUESTS, Frame
from servetop.tui.state.request_rows import COLUMNS, bar, charted_value, ordered, row_of

Dashboard = Callable[..., DashboardApp]
TIMES = np.array([12.0, 12.1, 12.5, 12.6])
RECORD = RequestRecord(
    id=7, stage=0, due=10.0, sent=11.0, first_token_at=12.0, done_at=13.0, prompt_tokens=100, output_tokens=7,
    status=RequestStatus.OK, chunk_times=TIMES, chunk_tokens=np.array([1, 2, 2, 2]),
)  # fmt: skip
TIMED = replace(RECORD, replica=1, server_queue=0.5, server_prefill=0.25)
FAILED = replace(RECORD, id=8, done_at=14.0, status=RequestStatus.ERROR, error="[bold]no\x1b[2J")


def bar_of(record: RequestRecord, *, at: float) -> str:
    return Lines([bar(row_of(record, at).spans, (10.0, 15.0), 10, failed=row_of(record, at).failed)]).plain


def test_a_row_contains_nothing_after_its_time() -> None:
    row = row_of(RECORD, 12.2)
    assert (row.ttft, row.output_tokens, row.status) == (1.0, 3, "… decode")
    assert math.isnan(row.e2el)
    assert row.itl == np.float64(TIMES[1] - TIMES[0]) / 2
    assert row_of(RECORD, 11.5).status == "… waiting"
    assert math.isnan(row_of(RECORD, 11.5).ttft)


def test_a_row_of_a_finished_request_has_all_values() -> None:
    row = row_of(RECORD, 13.0)
    assert (row.ttft, row.e2el, row.output_tokens, row.status, row.failed) == (1.0, 2.0, 7, "ok", False)
    assert row.itl_max == np.float64(12.5 - 12.1)
    assert (row_of(FAILED, 14.0).status, row_of(FAILED, 14.0).failed) == ("✖ error", True)


def test_a_bar_shows_the_phases_up_to_a_time() -> None:
    assert bar_of(RECORD, at=15.0) == "╌╌░░██    "
    assert bar_of(RECORD, at=12.5) == "╌╌░░█     "
    assert bar_of(FAILED, at=15.0) == "╌╌░░█╍╍╍✖ "
    assert bar_of(FAILED, at=13.9) == "╌╌░░█╍╍   "


def test_a_bar_of_a_new_request_is_one_cell_of_its_phase() -> None:
    assert bar_of(RECORD, at=10.0) == "╌         "
    assert bar_of(replace(RECORD, due=11.0), at=11.0) == "  ░       "
    assert bar_of(replace(RECORD, due=9.0, sent=9.0, first_token_at=9.0, done_at=9.5), at=11.0) == "█         "


@given(st.floats(0, 30), st.floats(0, 5), st.floats(0, 5), st.floats(0, 5), st.floats(0, 40), st.integers(1, 60))
def test_a_bar_has_its_width(due: float, held: float, wait: float, decode: float, at: float, width: int) -> None:
    record = replace(
        RECORD, due=due, sent=due + held, first_token_at=due + held + wait, done_at=due + held + wait + decode
    )
    assert row_width(bar(row_of(record, at).spans, (10.0, 15.0), width)) == width


def test_every_column_sorts_both_ways_with_unknown_values_last() -> None:
    rows = [row_of(RECORD, 13.0), row_of(replace(FAILED, due=10.5), 20.0), row_of(replace(RECORD, id=9), 11.5)]
    for column in COLUMNS:
        for descending in (False, True):
            values = [getattr(row, column) for row in ordered(rows, column, descending=descending)]
            known = [value for value in values if not (isinstance(value, float) and math.isnan(value))]
            assert known == sorted(known, reverse=descending)
            assert values[: len(known)] == known


def test_the_longest_gap_is_marked_over_its_token(canned: ModuleType, frame_of: Callable[..., Frame]) -> None:
    stats = frame_of(canned.finished(), 60.0).stats
    text = Lines(draw_request(RECORD, stats, 66, 12)).plain
    (marked,) = [line for line in text.split("\n") if "▼" in line]
    assert "400 ms after token 3" in marked
    assert marked.index("▼") == 6 + int((12.5 - 10.0) / 3.0 * 60)
    assert "queued 1.00 s" in text


def test_the_servers_own_times_are_shown_if_it_reported_them(
    canned: ModuleType, frame_of: Callable[..., Frame]
) -> None:
    stats = frame_of(canned.finished(), 60.0).stats
    text = Lines(draw_request(TIMED, stats, 80, 12)).plain
    assert "server: queue 500 ms  prefill 250 ms  decode –" in text
    assert "replica 1" in text.split("\n")[0]
    assert "server" not in Lines(draw_request(RECORD, stats, 80, 12)).plain


@given(st.integers(40, 220), st.integers(4, 60))
def test_a_request_fits_any_size(width: int, height: int) -> None:
    from servetop.analysis.live_stats import live_stats
    from servetop.analysis.series.tick_history import TickHistory

    stats = live_stats(TickHistory(), 14.0, span=4.0)
    empty = replace(RECORD, first_token_at=None, chunk_times=TIMES[:0], chunk_tokens=TIMES[:0])
    for record in (RECORD, TIMED, empty):
        rows = draw_request(record, stats, width, height)
        assert len(rows) <= max(height, 6)
        assert max(row_width(row) for row in rows) <= width


def lines_of(app: DashboardApp) -> list[str]:
    return app.screen.query_one(RequestsPanel).render().plain.split("\n")


@contextlib.asynccontextmanager
async def requests_screen(app: DashboardApp, *, size: tuple[int, int]) -> AsyncIterator[Pilot[str]]:
    """The keys of a dashboard that shows the requests screen."""
    async with app.run_test(size=size) as pilot:
        await pilot.press("2")
        yield pilot


async def test_arrows_select_a_request_enter_opens_it_and_escape_goes_back(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    async with requests_screen(app, size=(120, 40)) as pilot:
        assert isinstance(app.screen, RequestsScreen)
        await pilot.press("down", "down", "up", "pagedown", "pageup", "down")
        chosen = app.screen.query_one(RequestsPanel).selected
        assert lines_of(app)[2].startswith(f"▸ {chosen:>8}")
        await pilot.press("enter")
        assert isinstance(app.screen, RequestScreen)
        assert f"Request {chosen}" in str(app.screen.query_one(TokensPanel)._border_title)
        await pilot.press("escape")
        assert isinstance(app.screen, RequestsScreen)
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)


async def test_s_cycles_through_the_columns_and_f_shows_failed_requests_only(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.finished(), start_at=108.0)
    async with requests_screen(app, size=(160, 48)) as pilot:
        panel = app.screen.query_one(RequestsPanel)
        heads = []
        for _ in range(3):
            heads.append(next(word for word in lines_of(app)[0].split() if word[0] in "▼▲"))
            await pilot.press("s")
        assert heads == ["▼due", "▼TTFT", "▼ITL"]
        await pilot.press("S")
        assert "▲max" in lines_of(app)[0]
        await pilot.press("f")
        assert panel.rows
        assert all(row.failed for row in panel.rows)
        await pilot.press("f")
        assert not all(row.failed for row in panel.rows)


async def test_the_requests_are_those_at_the_cursor(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("c", *["shift+left"] * 5, "2")
        rows = app.screen.query_one(RequestsPanel).rows
        assert 55.0 < max(row.due for row in rows) <= 60.0


async def test_a_cell_of_the_heat_map_selects_the_nearest_request(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=110.0)
    async with app.run_test(size=(160, 48)) as pilot:
        for row in (3, 5, 7):
            await pilot.click(HeatPanel, offset=(30, row))
            cursor = app.viewer.view.cursor
            assert cursor is not None
            assert cursor.latency is not None
            await pilot.press("2")
            panel = app.screen.query_one(RequestsPanel)
            chosen = row_of(next(each.record for each in panel.rows if each.id == panel.selected), cursor.at)
            felt = partial(charted_value, metric="ttft")
            near = [each for each in panel.rows if abs((each.record.first_token_at or 1e9) - cursor.at) <= 2.0]
            best = min(abs(math.log(felt(each) / cursor.latency)) for each in near or panel.rows if each.ttft > 0)
            assert abs(math.log(felt(chosen) / cursor.latency)) == best
            await pilot.press("down")
            assert panel.selected != chosen.id
            await pilot.press("1")


async def test_requests_in_flight_are_listed_while_the_run_is_live(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(108.0)
    app = dashboard(run)
    async with requests_screen(app, size=(160, 48)) as pilot:
        panel = app.screen.query_one(RequestsPanel)
        under_way = [row for row in panel.rows if row.record.done_at == math.inf]
        assert {row.id for row in under_way} == {each.id for each in run.in_flight()}
        assert {row.status for row in under_way} == {"… decode", "… waiting"}
        ended = len(panel.rows) - len(under_way)
        assert f"Requests {ended} in " in str(panel._border_title)
        panel.selected = under_way[0].id
        await pilot.press("enter")
        assert isinstance(app.screen, RequestsScreen)
        assert "in flight" in app.viewer.view.message
        await pilot.press("f")
        assert all(row.record.done_at != math.inf for row in panel.rows)


async def test_only_a_few_hundred_requests_are_read(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.finished()
    requested: list[tuple[float, float, float, int]] = []
    answer = run.requests

    def requests(start: float, until: float, *, ended_by: float, most: int) -> object:
        requested.append((start, until, ended_by, most))
        return answer(start, until, ended_by=ended_by, most=most)

    run.requests = requests
    app = dashboard(run, start_at=60.0)
    async with app.run_test(size=(120, 40)) as pilot:
        assert requested == []
        await pilot.press("2")
        assert requested
        for start, until, ended_by, most in requested:
            assert until - start <= 60.0
            assert until == 60.0
            assert ended_by < 120.0
            assert most == MOST_REQUESTS


def test_the_time_axis_moves_in_steps_and_never_begins_before_the_run() -> None:
    assert time_axis(176.0, 250.0) == (0.0, 187.5)
    assert time_axis(0.0, 8.0) == (0.0, 1.0)
    assert time_axis(19.2, 8.0) == time_axis(20.0, 8.0) == (12.0, 20.0)


@given(st.floats(0, 1e4), st.floats(0, 300), st.floats(0, 600))
def test_the_time_axis_contains_the_rows_that_are_drawn_and_little_more(
    due: float, lasted: float, previous: float
) -> None:
    row = row_of(replace(RECORD, due=due, sent=due, first_token_at=due, done_at=due + lasted), 1e6)
    length = axis_length([row], 1e6, previous)
    start, end = time_axis(due + lasted, length)
    assert start <= due + 1e-6
    assert due + lasted <= end + 1e-6
    assert axis_length([row], 1e6, 0.0) <= max(lasted * 3, 1.0)


def test_a_request_in_flight_lengthens_the_time_axis_up_to_the_present_only() -> None:
    slow = row_of(replace(RECORD, done_at=500.0), 12.0)
    assert axis_length([slow], 12.0, 0.0) < 5.0


async def test_long_after_the_last_request_the_last_ones_are_listed(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.finished()
    known = [replace(RECORD, id=number, due=at, sent=at, first_token_at=at + 1.0, done_at=at + 2.0)
             for number, at in enumerate((10.0, 70.0, 71.0))]  # fmt: skip
    known[0] = replace(known[0], status=RequestStatus.ERROR)
    run.requests = lambda start, until, **_: [
        each for each in known if start <= (each.done_at or 0.0) and each.due <= until
    ]
    app = dashboard(run, start_at=120.0)
    async with requests_screen(app, size=(120, 20)) as pilot:
        panel = app.screen.query_one(RequestsPanel)
        assert [row.id for row in panel.rows] == [2, 1]
        assert lines_of(app)[0].endswith("01:13.0")
        await pilot.press("f")
        assert [row.id for row in panel.rows] == [0]
        assert lines_of(app)[1].count("✖") == 2, "status, and the end of the bar"
