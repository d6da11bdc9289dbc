"""The recordings browser: previews, filter, opening, renaming, deleting."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from servetop.core.events import RunEnd
from servetop.core.interfaces.recording_store import RecordingPreview
from servetop.recordings.library.folder_store import FolderStore
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.tui.app import DashboardApp
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.detail.recordings_list import RecordingsList
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.recordings_screen import RecordingsScreen
from tests.harness import SLOW_MACHINE

Dashboard = Callable[..., DashboardApp]
NOON = 1_700_000_000.0
HOSTILE = "\x1b[2J[red]evil[/] \u202egpj"


@pytest.fixture
def folder(tmp_path: Path, canned: ModuleType) -> Path:
    """Three recordings of ten seconds: alpha (the newest), beta, gamma."""
    for number, name in enumerate(("gamma", "beta", "alpha")):
        config = replace(canned.CONFIG, label=f"run {name}")
        recorder = Recorder.create(tmp_path / f"{name}.servetop", replace(canned.finished().header, config=config))
        for tick in canned.ticks(seconds=10.0):
            recorder.commit(TickTransaction(tick=tick))
        recorder.close(RunEnd(at=10.0, exit_code=0, reason=""))
        os.utime(recorder.path, (NOON + number, NOON + number))
    return tmp_path


@pytest.fixture
def browser(folder: Path, canned: ModuleType, dashboard: Dashboard) -> DashboardApp:
    """A live run, with the three recordings in its store."""
    return dashboard(canned.growing(), options=DashboardOptions(store=FolderStore(folder)))


async def test_the_browser_may_be_opened_while_the_app_exits(browser: DashboardApp, folder: Path) -> None:
    async with browser.run_test() as pilot:
        browser.exit("quit")
        browser.push_screen(RecordingsScreen(FolderStore(folder), on_screen="alpha"))
        await pilot.pause()
    assert browser.return_value == "quit"


def listing(app: DashboardApp) -> RecordingsList:
    return app.screen.query_one(RecordingsList)


def shown(app: DashboardApp) -> list[str]:
    return [path.stem for path in listing(app).shown]


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    for _ in range(500 * SLOW_MACHINE):
        if condition():
            return
        await pilot.pause(0.01)
    pytest.fail("it did not come about")


async def test_the_row_of_a_live_run_is_updated(folder: Path, canned: ModuleType, dashboard: Dashboard) -> None:
    ticks = canned.ticks(seconds=60.0)
    recorder = Recorder.create(folder / "now.servetop", canned.finished().header)
    for tick in ticks[:80]:
        recorder.commit(TickTransaction(tick=tick))
    app = dashboard(canned.growing(), options=DashboardOptions(store=FolderStore(folder)))
    async with app.run_test(size=(120, 24)) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "0:20" in listing(app).render().plain)
        before = {path: preview for path, preview in listing(app).known.items() if path.stem != "now"}
        for tick in ticks[80:160]:
            recorder.commit(TickTransaction(tick=tick))
        await until(pilot, lambda: "0:40" in listing(app).render().plain)
        recorder.close(RunEnd(at=40.0, exit_code=0, reason=""))
        await until(pilot, lambda: "● live" not in listing(app).render().plain)
        assert not listing(app).mark_stale()
        assert all(listing(app).known[path] is preview for path, preview in before.items())  # read once


async def test_r_lists_the_recordings_and_reads_them_one_by_one(browser: DashboardApp) -> None:
    async with browser.run_test(size=(120, 24)) as pilot:
        await pilot.press("r")
        assert shown(browser) == ["alpha", "beta", "gamma"]
        await until(pilot, lambda: len(listing(browser).known) == 3)
        text = listing(browser).render().plain
        assert "▸ alpha" in text
        assert "■ ended" in text
        assert "0:10" in text


async def test_enter_replays_the_one_under_the_cursor_in_place(browser: DashboardApp) -> None:
    async with browser.run_test() as pilot:
        await pilot.press("r", "down", "enter")
        assert isinstance(browser.screen, LiveScreen)
        assert (browser.viewer.source.name, browser.viewer.source.is_live()) == ("beta", False)
        await pilot.press("r")
        assert isinstance(browser.screen, RecordingsScreen)
        await pilot.press("escape")
        assert isinstance(browser.screen, LiveScreen)


async def test_quitting_asks_about_an_owned_run_that_is_not_shown(
    folder: Path, canned: ModuleType, dashboard: Dashboard
) -> None:
    run = canned.growing()
    app = dashboard(run, owns_run=True, options=DashboardOptions(store=FolderStore(folder)))
    async with app.run_test() as pilot:
        await pilot.press("r", "enter")
        assert app.viewer.source.name == "alpha"
        await pilot.press("q", "d")
    assert [str(command.action) for command in run.sent] == ["stop"]
    assert app.return_value == "stop"


async def test_typing_filters_by_name_and_metadata(browser: DashboardApp) -> None:
    async with browser.run_test() as pilot:
        await pilot.press("r", "slash", *"bet")
        assert shown(browser) == ["beta"]
        await pilot.press("escape")
        assert shown(browser) == ["alpha", "beta", "gamma"]
        await until(pilot, lambda: len(listing(browser).known) == 3)
        await pilot.press("slash", *"VLLM gam", "enter")
        assert shown(browser) == ["gamma"]
        assert not browser.screen.query_one(Input).has_focus
        await pilot.press("escape", "escape")
        assert isinstance(browser.screen, LiveScreen)


async def test_deleting_needs_a_typed_confirmation(browser: DashboardApp, folder: Path) -> None:
    async with browser.run_test() as pilot:
        await pilot.press("r", "d", "enter")
        await pilot.press("d", "n", "enter")
        await pilot.press("d", "y", "escape")
        assert shown(browser) == ["alpha", "beta", "gamma"]
        await pilot.press("d", "y", "enter")
        assert shown(browser) == ["beta", "gamma"]
        await pilot.press("delete", *"beta", "enter")
        assert shown(browser) == ["gamma"]
    assert [path.name for path in folder.iterdir()] == ["gamma.servetop"]


async def test_the_recording_on_the_screen_is_not_deleted(browser: DashboardApp, folder: Path) -> None:
    async with browser.run_test() as pilot:
        await pilot.press("r", "enter", "r", "d")
        assert isinstance(browser.screen, RecordingsScreen)
        assert "this recording is on the screen" in str(browser.screen.query_one("#hint").render())
    assert (folder / "alpha.servetop").exists()


async def test_a_read_only_browser_rejects_renaming_and_deleting(
    folder: Path, canned: ModuleType, dashboard: Dashboard
) -> None:
    around = DashboardOptions(store=FolderStore(folder), read_only=True)
    async with (browser := dashboard(canned.growing(), options=around)).run_test() as pilot:
        await pilot.press("r")
        hint = browser.screen.query_one("#hint")
        assert not [word for word in ("rename", "delete") if word in str(hint.render())]
        for key in ("e", "d"):
            await pilot.press(key)
            assert isinstance(browser.screen, RecordingsScreen)
            assert "this page is read-only" in str(hint.render())


async def test_renaming_keeps_the_cursor_on_it(browser: DashboardApp, folder: Path) -> None:
    async with browser.run_test() as pilot:
        await pilot.press("r", "down", "e", *"-2", "enter")
        assert shown(browser) == ["alpha", "beta-2", "gamma"]
        assert listing(browser).current == folder / "beta-2.servetop"
        await pilot.press("f2", *["backspace"] * 6, *"gamma", "enter")
        assert "a recording gamma already exists" in str(browser.screen.query_one("#hint").render())


async def test_a_click_chooses_and_a_second_one_opens(browser: DashboardApp, folder: Path) -> None:
    async with browser.run_test() as pilot:
        await pilot.press("r")
        await pilot.click(RecordingsList, offset=(6, 4))
        assert listing(browser).current == folder / "gamma.servetop"
        await pilot.click(RecordingsList, offset=(6, 4))
        assert browser.viewer.source.name == "gamma"


async def test_the_letters_of_the_browser_do_not_steer_the_run_below(
    folder: Path, canned: ModuleType, dashboard: Dashboard
) -> None:
    run = canned.growing()
    app = dashboard(run, options=DashboardOptions(store=FolderStore(folder)))
    async with app.run_test() as pilot:
        await pilot.press("r", "p", "n", "x", "b", "space")
    assert run.sent == []


async def test_the_browser_can_be_the_first_screen(folder: Path, dashboard: Dashboard) -> None:
    store = FolderStore(folder)
    app = dashboard(store.open(store.newest()), options=DashboardOptions(store=store, browse=True))
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, RecordingsScreen))
    store.close()


async def test_a_thousand_recordings_are_listed_at_once_and_visible_ones_read_first(
    tmp_path: Path, canned: ModuleType, dashboard: Dashboard
) -> None:
    for number in range(1000):
        (tmp_path / f"run-{number:04d}.servetop").write_bytes(b"no recording")
    read: list[Path] = []
    go_on = threading.Event()

    class Watched(FolderStore):
        def preview(self, path: Path, *, bins: int) -> RecordingPreview:
            read.append(path)
            go_on.wait(10)
            return super().preview(path, bins=bins)

    app = dashboard(canned.growing(), options=DashboardOptions(store=Watched(tmp_path)))
    async with app.run_test(size=(120, 24)) as pilot:
        await pilot.press("r")
        assert len(shown(app)) == 1000
        app.screen.action_move(10**9)  # type: ignore[attr-defined]
        last = listing(app).shown[-1]
        go_on.set()
        await until(pilot, lambda: last in listing(app).known)
        assert read.index(last) <= 24


async def test_the_browser_can_be_left_while_a_file_is_being_read(
    folder: Path, canned: ModuleType, dashboard: Dashboard
) -> None:
    started, go_on = threading.Event(), threading.Event()

    class Slow(FolderStore):
        def preview(self, path: Path, *, bins: int) -> RecordingPreview:
            started.set()
            go_on.wait(10)
            return super().preview(path, bins=bins)

    app = dashboard(canned.growing(), options=DashboardOptions(store=Slow(folder)))
    async with app.run_test() as pilot:
        await pilot.press("r")
        await until(pilot, started.is_set)
        await pilot.press("down", "enter")
        go_on.set()
        await pilot.pause(0.2)
        await pilot.press("r", "escape", "z")
        assert (app.viewer.source.name, app.viewer.view.span) == ("beta", 30.0)


async def test_a_folder_without_recordings_says_so(tmp_path: Path, canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing(), options=DashboardOptions(store=FolderStore(tmp_path / "none")))
    async with app.run_test() as pilot:
        await pilot.press("r", "enter", "d", "e")
        assert "no recording matches" in listing(app).render().plain
