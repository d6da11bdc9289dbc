"""The screen of a search: answer, loads, interval over time, at any playhead."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from servetop.core.interfaces.search_state import SearchedLoad, SearchedObjective
from servetop.tui.app import DashboardApp
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.search.answer import budget_left, draw_answer
from servetop.tui.panels.search.interval import draw_interval
from servetop.tui.panels.search.searched_loads import LoadsChart, LoadsTable, draw_chart, draw_table
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.search_screen import SearchScreen
from servetop.tui.state.search_progress import SearchProgress
from tests.tui.canned_search import PRINTED, SEARCH, searched
from tests.tui.test_search_progress import progress

Dashboard = Callable[..., DashboardApp]


def _text(rows: Any) -> list[str]:
    return ["".join(text for text, _ in row).rstrip() for row in rows]


@pytest.mark.parametrize(
    ("at", "rows"),
    [
        (1.0, ["answer    not known yet", "now       4 req/s: the first load"]),
        (16.0, ["answer    above 4 req/s", "now       20 req/s: no load was too high yet"]),
        (31.0, ["answer    6 to 20 req/s, best estimate 13, set by p90 TTFT ≤ 500 ms",
                "now       7 req/s: until the backlog of 88 requests is gone"]),
    ],
)  # fmt: skip
def test_the_answer_so_far_is_one_line_and_the_load_another(at: float, rows: list[str]) -> None:
    assert _text(draw_answer(progress(at), 80)) == rows


def test_the_answer_at_the_end_is_the_sentence_that_is_printed() -> None:
    rows = _text(draw_answer(progress(80.0), 60))
    assert " ".join(row[10:] for row in rows if not row.startswith("confirmed")).startswith(PRINTED)
    assert all(len(row) <= 60 for row in rows)


def test_the_confirmation_has_its_load_and_the_share_within_each_objective() -> None:
    assert _text(draw_answer(progress(80.0), 160))[-1] == (
        "confirmed 13.9 req/s for 0:15: p90 TTFT ≤ 500 ms: 94.2 % within, p99 ITL ≤ 50 ms: 99.9 % within"
    )


def test_the_time_left_falls_between_decisions() -> None:
    assert "".join(text for text, _ in budget_left(progress(15.0))) == "1:45 left of 2:00"
    assert "".join(text for text, _ in budget_left(progress(25.0))) == "1:35 left of 2:00"
    assert "".join(text for text, _ in budget_left(progress(90.0))) == "used 1:15 of 2:00"


def test_the_table_has_the_newest_load_first_with_its_figures() -> None:
    rows = _text(draw_table(progress(31.0), 0, size=(110, 8)))
    assert rows[0].split()[:3] == ["req/s", "from", "for"]
    assert rows[1] == (
        "       20     0:15   0:15  queue grows  ✗   80 % [60, 90]    of 300     ○  3.3 % [1, 6]      of 9,000"
    )
    assert rows[2].split()[:9] == ["4", "0:00", "0:15", "●", "0", "%", "[0,", "6]", "of"]


def test_a_narrow_table_has_the_chosen_objective_only() -> None:
    rows = _text(draw_table(progress(31.0), 1, size=(70, 8)))
    assert "p99 ITL" in rows[0]
    assert "TTFT" not in rows[0]


MEAN_OBJECTIVE = SearchedObjective(label="mean TTFT ≤ 200 ms", allowed=1.0, mean_limit=0.2)


def _with_mean(at: float) -> SearchProgress:
    """The canned search, whose first objective is on a mean: ten times the share that missed, in seconds."""
    given = progress(at)

    def figures(load: SearchedLoad) -> SearchedLoad:
        if not load.figures:
            return load
        first, *rest = load.figures
        mean = 10 * first.missed / first.counted + 0.04
        ends: Any = {"mean": mean, "low": 0.8 * mean, "high": math.inf if load.number == 0 else 1.2 * mean}
        return dataclasses.replace(load, figures=(dataclasses.replace(first, **ends), *rest))

    states = tuple(
        dataclasses.replace(
            state, objectives=(MEAN_OBJECTIVE, *state.objectives[1:]), loads=tuple(map(figures, state.loads))
        )
        for state in given.states
    )
    return dataclasses.replace(given, states=states, loads=tuple(map(figures, given.loads)))


def test_a_mean_is_in_the_table_with_its_interval_and_unit() -> None:
    rows = _text(draw_table(_with_mean(46.0), 0, size=(110, 8)))
    assert "✗ 8.04 s  [6.43, 9.65] of 300" in rows[2]
    assert "●   40 ms              of 60" in rows[3]
    assert rows[2].endswith("○  3.3 % [1, 6]      of 9,000")


def test_the_confirmation_of_a_mean_is_in_seconds() -> None:
    assert _text(draw_answer(_with_mean(80.0), 160))[-1] == (
        "confirmed 13.9 req/s for 0:15: mean TTFT ≤ 200 ms: 617 ms, p99 ITL ≤ 50 ms: 99.9 % within"
    )


def test_the_chart_of_a_mean_has_its_limit() -> None:
    rows = _text(draw_chart(_with_mean(46.0), 0, width=60, height=13))
    assert [row[:5].strip() for row in rows if "ms┤" in row or "s┤" in row] == ["2s", "200ms", "20ms"]
    assert "✗" in rows[0]


def test_a_load_that_only_recovers_has_no_figures() -> None:
    rows = _text(draw_table(progress(46.0), 0, size=(110, 8)))
    assert rows[1].split() == ["7", "0:30", "0:15", "recovery"]


def test_the_chart_has_a_point_for_each_load_with_samples() -> None:
    rows = _text(draw_chart(progress(62.0), 0, width=60, height=14))
    assert sum(row.count(mark) for row in rows for mark in "●✗○") == 3


def test_loads_before_a_restart_of_the_server_are_in_the_table_but_not_in_the_chart() -> None:
    restarted = dataclasses.replace(progress(62.0), uncounted=2)
    chart = _text(draw_chart(restarted, 0, width=60, height=14))
    assert sum(row.count(mark) for row in chart for mark in "●✗○") == 1
    drawn = draw_table(restarted, 0, size=(110, 8))
    assert [row.split()[3:5] for row in _text(drawn)[-2:]] == [["not", "counted"]] * 2
    assert {style for row in drawn[-2:] for text, style in row if text.strip()} == {"muted"}


def test_the_interval_over_time_needs_two_decisions() -> None:
    drawn = _text(draw_interval(progress(62.0), 62.0, width=60, height=10))
    assert drawn[-1].split()[-1].endswith("0")
    assert any(each for each in drawn)


def test_a_recording_without_decisions_shows_its_notes() -> None:
    old = SearchProgress(search=SEARCH, at=9.0, newest_note="4 req/s for 8 s │ answer above 4 req/s")
    assert _text(draw_answer(old, 80)) == ["answer    4 req/s for 8 s │ answer above 4 req/s"]


async def test_the_dashboard_of_a_search_opens_on_it(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(searched(canned))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert isinstance(app.screen, SearchScreen)
        await pilot.press("1")
        assert isinstance(app.screen, LiveScreen)
        await pilot.press("4")
        assert isinstance(app.screen, SearchScreen)


async def test_another_run_opens_on_the_live_screen(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert isinstance(app.screen, LiveScreen)


async def test_keys_choose_the_objective_and_scroll_the_table(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(searched(canned))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        chart, table = app.screen.query_one(LoadsChart), app.screen.query_one(LoadsTable)
        assert "p90 TTFT" in str(chart.border_title)
        await pilot.press("t", "t")
        assert "p99 ITL" in str(chart.border_title)
        await pilot.press("t")
        assert "p90 TTFT" in str(chart.border_title)
        first = table.render().plain.splitlines()[1]
        await pilot.press("down")
        assert table.render().plain.splitlines()[1] != first


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("at", [50.0, 90.0], ids=["during", "ended"])
def test_the_screen_of_a_search(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Any, at: float, size: tuple[int, int]
) -> None:
    assert snap_compare(dashboard(searched(canned), start_at=at), terminal_size=size)


@pytest.mark.parametrize("theme", ["light", "ansi", "mono"])
def test_the_screen_of_a_search_in_another_theme(
    canned: ModuleType, dashboard: Dashboard, snap_compare: Any, theme: str
) -> None:
    app = dashboard(searched(canned), start_at=50.0, options=DashboardOptions(theme=theme))
    assert snap_compare(app, terminal_size=(120, 40))


async def test_keys_that_would_change_what_is_measured_are_refused_during_a_search(
    canned: ModuleType, dashboard: Dashboard, text_of: Callable[[DashboardApp, str], str]
) -> None:
    run = canned.growing(110.0, facts=canned.VLLM)
    run.config = dataclasses.replace(run.config, search=SEARCH)
    app = dashboard(run)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("b")
        assert app.viewer.view.message.startswith("the search chooses the load and keeps the engine as it is")
        await pilot.press("1")
        for key in ("b", "B", "shift+up", "]", "o", "p", "n", "N", "x"):
            await pilot.press(key)
            assert "the search chooses the load and keeps the engine as it is" in text_of(app, "#status"), key
        assert run.sent == []
        await pilot.press("m")
        await pilot.press(*"note", "enter")
        assert [each.text for each in run.sent] == ["note"]
