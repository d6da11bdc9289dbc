"""The keys of the dashboard: commands, replies, and quitting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from servetop.core.clock import ManualClock
from servetop.core.events import Action, LogLine, Note, Severity
from servetop.tui.app import DashboardApp
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.detail.log_view import LogView
from servetop.tui.screens.help import HelpScreen
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.log_screen import LogScreen
from servetop.tui.screens.question import NoteQuestion, QuestionScreen

Dashboard = Callable[..., DashboardApp]
Growing = tuple[Any, DashboardApp]
TextOf = Callable[[DashboardApp, str], str]


async def test_a_steering_key_sends_its_command_and_shows_the_reply(growing: Growing, text_of: TextOf) -> None:
    run, app = growing
    async with app.run_test() as pilot:
        for key, action, value in (
            ("space", Action.HOLD_STAGE, None),
            ("p", Action.PAUSE_LOAD, None),
            ("up", Action.SET_RATE, 21.0),
            ("down", Action.SET_RATE, 19.0),
            ("shift+up", Action.SET_RATE, 25.0),
            ("shift+down", Action.SET_RATE, 15.0),
            ("[", Action.SET_CONCURRENCY, 127.0),
            ("b", Action.SET_MAX_NUM_SEQS, 160.0),
            ("B", Action.SET_MAX_NUM_SEQS, 224.0),
            ("n", Action.NEXT_STAGE, None),
            ("x", Action.BURST, 20.0),
            ("N", Action.PREVIOUS_STAGE, None),
            ("o", Action.CLOSE_LOOP, 141.0),
            ("F", Action.SEARCH, None),
        ):
            await pilot.press(key)
            assert (run.sent[-1].action, run.sent[-1].value) == (action, value)
            assert f"✓ {action.value} applied" in text_of(app, "#status")
            assert f"{action.value} applied" in text_of(app, "#timeline")
        assert len(run.sent) == 14


async def test_a_note_of_a_full_disk_is_shown_at_once_and_once(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    run = canned.growing(110.0)
    caught = Note(
        at=110.3, severity=Severity.ERROR, source="recorder", text="run.servetop cannot be written (disk full)"
    )
    waiting = [caught, caught]
    options = DashboardOptions(unrecorded_notes=lambda: [waiting.pop()] if waiting else [])
    app = dashboard(run, owns_run=True, options=options)
    async with app.run_test() as pilot:
        for _ in range(3):
            app.poll()
        await pilot.pause()
        assert app.screen.has_class("-alert")
        assert caught.text in text_of(app, "#alert")
        await pilot.press("l")
        assert app.screen.query_one(LogView).render().plain.count("cannot be written") == 1
        run.notes = [replace(caught, at=110.25)]
        run.now = 111.0
        app.poll()
        assert [note for note in app.viewer.run.notes if note.source == "recorder"] == run.notes


async def test_repeated_keys_build_on_pending_requests(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    run = canned.growing(110.0)
    run.answers = False
    app = dashboard(run)
    async with app.run_test() as pilot:
        await pilot.press("up", "up")
        assert [sent.value for sent in run.sent] == [21.0, 22.05]
        assert "… rate 21.0 req/s, rate 22.1 req/s pending" in text_of(app, "#status")


async def test_a_held_ramp_is_continued_and_a_paused_load_resumed(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(110.0)
    run.ticks = [
        replace(tick, client=replace(tick.client, gauges=replace(tick.client.gauges, holding=True, paused=True)))
        for tick in run.ticks
    ]
    async with dashboard(run).run_test() as pilot:
        await pilot.press("space", "p")
        assert [sent.action for sent in run.sent] == [Action.CONTINUE_STAGES, Action.RESUME_LOAD]


async def test_a_key_without_effect_shows_the_reason(growing: Growing, text_of: TextOf) -> None:
    run, app = growing
    async with app.run_test() as pilot:
        await pilot.press("]")
        assert "no concurrency limit to raise" in text_of(app, "#status")
        assert run.sent == []


async def test_nothing_steers_a_run_that_has_ended(canned: ModuleType, dashboard: Dashboard, text_of: TextOf) -> None:
    run = canned.finished()
    app = dashboard(run)
    async with app.run_test() as pilot:
        for key in ("shift+up", "b", "p", "n", "x", "m"):
            await pilot.press(key)
            assert "nothing to steer: the run has ended" in text_of(app, "#status")
        assert run.sent == []


async def test_a_mark_carries_its_note(growing: Growing) -> None:
    run, app = growing
    async with app.run_test() as pilot:
        await pilot.press("m")
        assert isinstance(app.screen, NoteQuestion)
        await pilot.press(*"cache off", "enter")
        assert [(sent.action, sent.text) for sent in run.sent] == [(Action.MARK, "cache off")]
        await pilot.press("m", "escape")
        assert len(run.sent) == 1


async def test_a_batch_size_that_needs_a_restart_is_confirmed_first(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(110.0, facts=canned.VLLM)
    app = dashboard(run)
    async with app.run_test() as pilot:
        await pilot.press("B")
        assert isinstance(app.screen, QuestionScreen)
        await pilot.press("escape")
        assert run.sent == []
        await pilot.press("B", "y")
        assert [(sent.action, sent.value) for sent in run.sent] == [(Action.SET_MAX_NUM_SEQS, 224)]


async def test_a_playback_key_moves_through_the_run(canned: ModuleType, dashboard: Dashboard, text_of: TextOf) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    async with app.run_test(size=(120, 30)) as pilot:
        for key, shown in (
            ("right", "00:01:05 ▶ replay ×1"),
            ("left", "00:01:00 ▶ replay ×1"),
            ("shift+right", "00:01:30 ▶ replay ×1"),
            ("shift+left", "00:01:00 ▶ replay ×1"),
            ("plus", "00:01:00 ▶ replay ×2"),
            ("greater_than_sign", "00:01:00 ▶ replay ×4"),
            ("minus", "00:01:00 ▶ replay ×2"),
            ("less_than_sign", "00:01:00 ▶ replay ×1"),
            ("space", "00:01:00 ‖ replay ×1"),
            ("space", "00:01:00 ▶ replay ×1"),
            ("comma", "00:00:59 ‖ replay ×1"),
            ("full_stop", "00:01:00 ‖ replay ×1"),
            ("home", "00:00:00 ‖ replay ×1"),
            ("end", "00:02:06 ■ ended"),
            ("left", "00:02:01 ▶ replay ×1"),
            ("backslash", "00:02:06 ■ ended"),
        ):
            await pilot.press(key)
            assert text_of(app, "#header").endswith(shown), key


async def test_seeking_back_does_not_hold_the_ramp_and_end_returns(growing: Growing, text_of: TextOf) -> None:
    run, app = growing
    async with app.run_test() as pilot:
        await pilot.press("left", "space")
        assert run.sent == []
        assert text_of(app, "#header").endswith("‖ ×1 −0:05")
        await pilot.press("end")
        assert text_of(app, "#header").endswith("00:01:50 ● REC")


async def test_time_passes_by_the_clock_times_the_speed(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    assert isinstance(app.viewer.clock, ManualClock)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("plus")
        app.viewer.clock.advance_to(5.0)
        app.poll()
        assert text_of(app, "#header").endswith("00:01:10 ▶ replay ×2")


async def test_a_growing_run_is_followed_and_its_end_is_shown(
    growing: Growing, canned: ModuleType, text_of: TextOf
) -> None:
    run, app = growing
    async with app.run_test(size=(120, 30)) as pilot:
        run.now = 112.5
        app.poll()
        assert "00:01:52 ● REC" in text_of(app, "#header")
        run.now, run.live, run.end = 126.0, False, canned.finished().end
        app.poll()
        await pilot.pause()
        assert text_of(app, "#header").endswith("00:02:06 ■ ended")
        assert "play/pause" in text_of(app, "#keys")


async def test_zoom_and_metric_keys_cycle(canned: ModuleType, dashboard: Dashboard, text_of: TextOf) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    async with app.run_test() as pilot:
        axes, metrics = [], []
        for _ in range(5):
            axes.append(text_of(app, "#status").split()[-1])
            metrics.append(text_of(app, "#latency").partition("▸")[2].split()[0])
            await pilot.press("z", "t")
        assert axes == ["2:00", "10:00", "0:54", "0:30", "2:00"]
        assert metrics == ["TTFT", "TPOT", "ITL", "E2EL", "TTFT"]


async def test_the_log_fills_the_screen_and_scrolls(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.finished()
    run.log_lines = [LogLine(at=number * 0.1, text=f"line {number}") for number in range(100)]
    run.notes = ()
    app = dashboard(run, start_at=60.0)
    async with app.run_test() as pilot:
        await pilot.press("l")
        assert isinstance(app.screen, LogScreen)
        log = app.screen.query_one(LogView)
        assert log.render().plain.endswith("line 99")
        await pilot.press("up", "up", "pageup")
        assert log.render().plain.endswith("line 77")
        await pilot.press("pagedown", "pagedown")
        assert log.render().plain.endswith("line 99")
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)


async def test_help_opens_and_closes(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished())
    async with app.run_test() as pilot:
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)


@pytest.mark.parametrize(
    ("keys", "result", "sent"),
    [
        (["q", "d"], "stop", [Action.STOP]),
        (["ctrl+c", "c"], "cancel", [Action.CANCEL]),
        (["q", "l"], "detach", []),
        (["ctrl+c", "ctrl+c"], "cancel", [Action.CANCEL]),
        (["q", "down", "down", "enter"], "detach", []),
    ],
)
async def test_quitting_an_owned_run_asks_what_should_happen_to_it(
    canned: ModuleType, dashboard: Dashboard, keys: list[str], result: str, sent: list[Action]
) -> None:
    run = canned.growing(110.0)
    app = dashboard(run, owns_run=True)
    async with app.run_test() as pilot:
        await pilot.press(*keys)
    assert app.return_value == result
    assert [command.action for command in run.sent] == sent


async def test_going_back_from_the_question_changes_nothing(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(110.0)
    app = dashboard(run, owns_run=True)
    async with app.run_test() as pilot:
        await pilot.press("q", "escape")
        assert isinstance(app.screen, LiveScreen)
        assert run.sent == []


@pytest.mark.parametrize(("name", "result"), [("growing", "detach"), ("finished", "ended")])
async def test_quitting_an_attached_or_finished_run_asks_nothing(
    canned: ModuleType, dashboard: Dashboard, name: str, result: str
) -> None:
    app = dashboard(getattr(canned, name)())
    async with app.run_test() as pilot:
        await pilot.press("q")
    assert app.return_value == result
