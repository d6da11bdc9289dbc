"""Selecting one of several watched servers and opening it: all screens show it as if it was watched alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from servetop.analysis.fleet.replica_row import ReplicaRow
from servetop.core.events import Note, Severity
from servetop.core.interfaces.replica_change import ReplicaState
from servetop.tui.app import DashboardApp
from servetop.tui.panels.panel import Panel
from servetop.tui.state.fleet_state import FleetState
from servetop.tui.state.fleet_table import fleet_rows, listed_rows
from tests.tui.canned_fleet import NOTES, fleet
from tests.tui.test_fleet_state import CHANGES
from tests.tui.test_watch_screen import text

Dashboard = Callable[..., DashboardApp]
TextOf = Callable[[DashboardApp, str], str]


def marked(app: DashboardApp) -> str:
    """The server whose row in the table is marked; empty without one."""
    rows = app.screen.query_one("#engine-latency", Panel).render().plain.splitlines()
    return next((row.split()[1] for row in rows if row.startswith("▸")), "")


async def test_the_worst_is_selected_until_an_arrow_selects_another(dashboard: Dashboard) -> None:
    app = dashboard(fleet(), start_at=45.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("space")
        shown = [marked(app)]
        for key in ("down", "down", "down", "up"):
            await pilot.press(key)
            await pilot.pause()
            shown.append(marked(app))
    assert shown == ["gpu1", "gpu0", "gpu2", "gpu2", "gpu0"]


async def test_the_selection_is_of_a_server_and_not_of_a_row(dashboard: Dashboard) -> None:
    app = dashboard(fleet(), start_at=35.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("space", "down", "up")  # gpu0, which is first as it is KV-bound
        assert marked(app) == "gpu0"
        await pilot.press("right", "right")  # gpu1 is gone now, and first
        await pilot.pause()
        frame = app.viewer.frame()
        assert frame.fleet is not None
        assert frame.fleet.rows[0].name == "gpu1"
        assert marked(app) == "gpu0"


@pytest.mark.parametrize("live", [True, False])
async def test_an_opened_server_is_shown_as_if_it_was_watched_alone(
    dashboard: Dashboard, text_of: TextOf, live: bool
) -> None:
    app = dashboard(fleet(live=live, until=38.0), **({} if live else {"start_at": 37.0}))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("down")
        assert marked(app) != "gpu0"
        await pilot.press("up", "enter")
        await pilot.pause()
        shown = text(app)
        assert "watch gpu0" in shown.splitlines()[0]
        assert "KV-bound" in text_of(app, "#diagnosis")
        assert "3 of 3 serve" not in shown
        assert "by the engine's histograms" in shown
        assert "100 tok/s" in text_of(app, "#throughput")
        assert "gpu2" not in shown
        assert "esc all servers" in shown.splitlines()[-1]
        await pilot.press("escape")
        await pilot.pause()
        shown = text(app)
        assert (app.viewer.view.opened, marked(app)) == (None, "gpu0")
        assert "3 of 3 serve" in shown
        assert "Enter open" in shown.splitlines()[-1]


async def test_an_opened_server_follows_the_live_edge(dashboard: Dashboard) -> None:
    run = fleet(live=True, until=15.0)
    app = dashboard(run)
    async with app.run_test(size=(120, 40)) as pilot:
        app.viewer.view = app.viewer.view.__class__(playhead=app.viewer.view.playhead, opened=0)
        assert app.viewer.frame().verdict.bottleneck == "serving"
        run.now = 35.0
        app.poll()
        await pilot.pause()
        frame = app.viewer.frame()
    assert frame.verdict.bottleneck == "KV-bound"
    assert 33.0 <= frame.stats.at <= 35.0
    assert [each.kind for each in frame.episodes if each.is_active(frame.stats.at)] != []


async def test_a_server_that_is_gone_says_since_when(dashboard: Dashboard, text_of: TextOf) -> None:
    app = dashboard(fleet(), start_at=45.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("space", "enter")
        await pilot.pause()
        assert "watch gpu1" in text(app).splitlines()[0]
        assert "no response: since 0:40" in text_of(app, "#diagnosis")


async def test_an_opened_server_has_its_own_notes_and_those_of_all(dashboard: Dashboard) -> None:
    app = dashboard(fleet(), start_at=55.0)
    async with app.run_test(size=(120, 40)) as pilot:
        assert len(app.viewer.frame().notes) == 3
        await pilot.press("space", "down", "up", "enter")
        own = app.viewer.frame()
        assert own.server == "gpu1"
        assert [note.at for note in own.notes] == [40.0, 51.0]
        await pilot.press("5")
        await pilot.pause()
        assert "gpu1: nothing answers" in text(app)
        assert "gpu2: was restarted" not in text(app)


async def test_an_opened_server_that_was_never_watched_says_why_although_its_note_is_that_of_many(
    dashboard: Dashboard,
) -> None:
    found = fleet()
    reason = "nothing answers at http://gpu1 (connection refused): is the server up?"
    never = replace(CHANGES[0], at=1.0, replica=1, name="gpu1", state=ReplicaState.GONE, reason=reason, engine=None)
    found.changes = [*(each for each in CHANGES if each.replica != 1), never]
    text_of_many = "2 of 3 servers cannot be reached: nothing answers (connection refused) (http://gpu1, http://gpu3)"
    many = Note(at=1.0, severity=Severity.WARNING, source="engine", text=text_of_many)
    found.notes = (many, *NOTES[1:])
    app = dashboard(found, start_at=30.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("space", "enter")
        await pilot.pause()
        own = app.viewer.frame()
    assert own.server == "gpu1"
    assert [note.text for note in own.notes] == [many.text, f"gpu1: {reason}"]


async def test_an_event_is_one_of_the_opened_server(dashboard: Dashboard) -> None:
    app = dashboard(fleet(), start_at=30.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("space", "down", "down", "enter")
        opened = app.viewer.frame().server
        await pilot.press("right_square_bracket")
        at = app.viewer.view.playhead.at
    assert (opened, at) in [("gpu1", 40.0), ("gpu2", 50.0)]


@pytest.mark.parametrize("opened", [False, True])
async def test_the_engine_page_is_that_of_the_selected_server(dashboard: Dashboard, opened: bool) -> None:
    app = dashboard(fleet(), start_at=35.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("space", *(["enter"] if opened else []), "7")
        await pilot.pause()
        shown = text(app)
        row = next(line for line in shown.splitlines() if "finished: length" in line)
        assert "10" in row.split()
        assert ("watch gpu0" in shown) is opened
        assert (" of gpu0" in shown) is not opened
        await pilot.press("escape", *(["escape"] if opened else []), "down", "7")
        await pilot.pause()
        selected = app.viewer.frame().selected
        row = next(line for line in text(app).splitlines() if "finished: length" in line)
    assert selected is not None
    assert {"gpu1": "20.0", "gpu2": "30.0"}[selected.name] in row.split()


async def test_a_selected_panel_is_maximised_and_escape_has_one_meaning_after_the_other(dashboard: Dashboard) -> None:
    app = dashboard(fleet(), start_at=35.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("space", "tab", "enter")
        assert (app.screen.has_class("-maximised"), app.viewer.view.opened) == (True, None)
        await pilot.press("escape", "escape", "enter", "c")
        assert app.viewer.view.opened == 0
        await pilot.press("escape")
        assert (app.viewer.view.cursor, app.viewer.view.opened) == (None, 0)
        await pilot.press("escape")
        assert app.viewer.view.opened is None


async def test_help_lists_the_keys_of_a_watch_that_have_an_effect(dashboard: Dashboard) -> None:
    app = dashboard(fleet(), start_at=35.0)
    async with app.run_test(size=(120, 200)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        shown = text(app)
    assert "Select the server below" in shown
    assert "Show the selected server alone" in shown
    assert "Save a picture" in shown
    for missing in ("Request rate", "Write the report", "Latency metric shown", "waterfall"):
        assert missing not in shown


def test_a_table_without_room_for_all_keeps_the_selected_server_and_counts_the_others() -> None:
    state = FleetState(keep=None)
    state.fold(fleet().poll())
    found = state.at(45.0)
    last = listed_rows(found)[-1]

    def lines(height: int, selected: ReplicaRow | None = None) -> list[str]:
        rows = fleet_rows(found, 76, height=height, selected=selected)
        return ["".join(text for text, _ in row).strip() for row in rows]

    assert [line.split()[0] for line in lines(6)] == ["out", "skew", "server", "gpu1", "gpu0", "gpu2"]
    assert [line.split()[0] for line in lines(5)] == ["out", "server", "gpu1", "gpu0", "gpu2"]
    assert [line.split()[0] for line in lines(3)] == ["server", "gpu1", "2"]
    assert lines(3, selected=last)[1].split()[:2] == ["▸", "gpu2"]
    assert lines(3)[-1] == "2 more"
    assert lines(6)[2].split()[-2:] == ["TTFT", "p90"]
