"""Open and closed loops, stopping, read-only dashboards and long replays, by key."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.core.clock import ManualClock
from servetop.core.events import Action
from servetop.core.tick import Tick
from servetop.tui.app import DashboardApp
from servetop.tui.keys import STEERING
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.live.throughput import ThroughputPanel
from servetop.tui.screens.help import HelpText
from servetop.tui.screens.question import QuestionScreen
from servetop.tui.state.command_requests import Choice, Question

Dashboard = Callable[..., DashboardApp]
TextOf = Callable[[DashboardApp, str], str]
SIZES = [(80, 24), (120, 40), (220, 60), (60, 16), (160, 48)]


def closed(ticks: list[Tick]) -> list[Tick]:
    """The same ticks, as of a closed loop of 24 requests."""
    gauges = [replace(tick.client.gauges, request_rate=math.inf, max_concurrency=24) for tick in ticks]
    return [replace(tick, client=replace(tick.client, gauges=gauge)) for tick, gauge in zip(ticks, gauges, strict=True)]


async def test_a_closed_loop_is_opened_at_the_completion_rate(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(110.0)
    run.ticks = closed(run.ticks)
    shown = [tick for tick in run.ticks if tick.end <= 110.0][-40:]
    async with (app := dashboard(run)).run_test() as pilot:
        await pilot.press("o")
    assert (run.sent[-1].action, app.return_value) == (Action.OPEN_LOOP, None)
    assert run.sent[-1].value == pytest.approx(sum(tick.client.ok for tick in shown) / 10.0, rel=1e-3)


async def test_stopping_asks_how_and_a_second_stop_cancels(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    run = canned.growing(110.0)
    async with (app := dashboard(run)).run_test() as pilot:
        await pilot.press("s", "escape")
        assert run.sent == []
        await pilot.press("s")
        assert isinstance(app.screen, QuestionScreen)
        await pilot.press("d")
        assert [sent.action for sent in run.sent] == [Action.STOP]
        await pilot.press("s")
        assert [sent.action for sent in run.sent] == [Action.STOP, Action.CANCEL]
        assert app.is_running


async def test_stopping_can_cancel_at_once(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(110.0)
    async with dashboard(run).run_test() as pilot:
        await pilot.press("s", "c")
    assert [sent.action for sent in run.sent] == [Action.CANCEL]


async def test_pending_commands_are_shown(canned: ModuleType, dashboard: Dashboard, text_of: TextOf) -> None:
    run = canned.growing(110.0)
    run.answers = False
    app = dashboard(run)
    async with app.run_test(size=(120, 24)) as pilot:
        await pilot.press("N", "o")
        assert "… previous stage, closed loop of 141 pending" in text_of(app, "#status")


@pytest.mark.parametrize("key", ["N", "o", "s"])
async def test_a_finished_run_cannot_be_stopped(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf, key: str
) -> None:
    run = canned.finished()
    app = dashboard(run)
    async with app.run_test() as pilot:
        await pilot.press(key)
        assert "nothing to steer" in text_of(app, "#status")
    assert run.sent == []


@pytest.mark.integration
async def test_replays_at_64_times_leak_no_memory(canned: ModuleType) -> None:
    """Plays the run three times: the last pass must not hold more blocks of memory than the second."""
    length, clock = 600.0, ManualClock()
    run = canned.finished()
    run.ticks, run.end = canned.ticks(seconds=length), None
    app = DashboardApp(run, clock=clock, start_at=0.0)
    held: list[int] = []
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(*["+"] * 6)
        assert app.viewer.view.playhead.speed == 64
        for _ in range(3):
            await pilot.press("home")
            if not app.viewer.view.playhead.playing:
                await pilot.press("space")
            for step in range(20):
                clock.advance_to(clock.now() + 0.5)
                app.poll()
                if step % 4 == 0:
                    await pilot.resize_terminal(*SIZES[step // 4])
                await pilot.pause()
            assert app.viewer.view.playhead.at == pytest.approx(app.viewer.run.edge)
            gc.collect()
            held.append(sys.getallocatedblocks())
        assert app.screen.query_one(ThroughputPanel).frame is not None
    assert held[2] - held[1] < 3_000


async def test_a_read_only_dashboard_rejects_steering_keys(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    run = canned.growing(110.0)
    app = dashboard(run, options=DashboardOptions(read_only=True))
    async with app.run_test(size=(200, 60)) as pilot:
        shown = text_of(app, "#keys")
        assert "play/pause" in shown
        assert not [label for label in ("rate", "concurrency", "batch size", "mark", "burst", "stop") if label in shown]
        for key in ("up", "p", "m", "s", "b", "n", "x", "o"):
            await pilot.press(key)
            assert len(app.screen_stack) == 1, f"{key} opens a question"
            assert "▸ this page is read-only" in text_of(app, "#status"), key
            app.viewer.update_view(message="")
        await pilot.press("[")
        assert app.viewer.view.playhead.at < 110.0
        await pilot.press("end", "space")
        assert not app.viewer.view.playhead.following
        listed = [command.title for command in app.get_system_commands(app.screen)]
        assert listed
        assert not [title for title in listed if title.endswith(tuple(key.tooltip for key in STEERING))]
        await pilot.press("question_mark")
        assert not [line for line in app.screen.query_one(HelpText).render().plain.split("\n") if "Steer" in line]
    assert run.sent == []


async def test_a_question_closes_once_however_often_its_key_is_typed(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing())
    answers: list[str | None] = []
    async with app.run_test() as pilot:
        question = QuestionScreen(Question(text="What now?", choices=(Choice(key="d", label="go", result="done"),)))
        app.push_screen(question, answers.append)
        await pilot.pause()
        for _ in range(3):
            question.dismiss("done")
        await pilot.pause()
        assert answers == ["done"]
        assert len(app.screen_stack) == 1


async def test_a_dashboard_that_cannot_draw_still_ends_on_request(
    canned: ModuleType, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DashboardApp, "_on_first_frame", lambda _: None)  # as if the terminal accepted no output
    app = dashboard(canned.growing(), options=DashboardOptions(exit_requested=lambda: "abandoned"))
    async with app.run_test() as pilot:
        while app.return_value is None:
            await pilot.pause(0.05)
    assert app.return_value == "abandoned"
