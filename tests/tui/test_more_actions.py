"""Stages, loops and stopping by key; themes, the palette and reduced motion; long replays."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from textual.command import CommandPalette
from textual.widgets import Input

from servetop.core.clock import ManualClock
from servetop.core.events import Action
from servetop.core.tick import Tick
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.palette import STYLES, THEME_NAMES
from servetop.tui.keys import MOVING, STEERING, VIEWING
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.live.throughput import ThroughputPanel
from servetop.tui.screens.help import HelpScreen, HelpText
from servetop.tui.screens.question import QuestionScreen
from servetop.tui.state.command_requests import Choice, Question
from servetop.tui.themes import THEMES, default_theme

Dashboard = Callable[..., DashboardApp]
TextOf = Callable[[DashboardApp, str], str]
SIZES = [(80, 24), (120, 40), (220, 60), (60, 16), (160, 48)]


def closed(ticks: list[Tick]) -> list[Tick]:
    """The same ticks, as of a closed loop of 24 requests."""
    gauges = [replace(tick.client.gauges, request_rate=math.inf, max_concurrency=24) for tick in ticks]
    return [replace(tick, client=replace(tick.client, gauges=gauge)) for tick, gauge in zip(ticks, gauges, strict=True)]


async def test_the_stage_before_and_the_loop_are_asked_for_by_key_and_stand_on_the_time_line(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    run = canned.growing(110.0)
    app = dashboard(run)
    async with app.run_test() as pilot:
        for key, action, value in (("N", Action.PREVIOUS_STAGE, None), ("o", Action.CLOSE_LOOP, 141.0)):
            await pilot.press(key)
            assert (run.sent[-1].action, run.sent[-1].value) == (action, value)
            assert f"✓ {action.value} obeyed" in text_of(app, "#status")
            assert f"{action.value} obeyed" in text_of(app, "#timeline")


async def test_a_closed_loop_is_opened_at_the_rate_at_which_requests_end(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    run = canned.growing(110.0)
    run.ticks = closed(run.ticks)
    shown = [tick for tick in run.ticks if tick.end <= 110.0][-40:]
    async with (app := dashboard(run)).run_test() as pilot:
        await pilot.press("o")
    assert (run.sent[-1].action, app.return_value) == (Action.OPEN_LOOP, None)
    assert run.sent[-1].value == pytest.approx(sum(tick.client.ok for tick in shown) / 10.0, rel=1e-3)


async def test_stopping_asks_how_and_once_more_cancels(
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


async def test_what_waits_for_its_reply_is_shown_in_words(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    run = canned.growing(110.0)
    run.answers = False
    app = dashboard(run)
    async with app.run_test(size=(120, 24)) as pilot:
        await pilot.press("N", "o")
        assert "… previous stage, closed loop of 141 pending" in text_of(app, "#status")


@pytest.mark.parametrize("key", ["N", "o", "s"])
async def test_a_run_that_has_ended_is_not_steered(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf, key: str
) -> None:
    run = canned.finished()
    app = dashboard(run)
    async with app.run_test() as pilot:
        await pilot.press(key)
        assert "nothing to steer" in text_of(app, "#status")
    assert run.sent == []


async def test_the_theme_key_goes_through_all_themes_and_each_choice_is_remembered(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    chosen: list[str] = []
    app = dashboard(canned.growing(), options=DashboardOptions(theme="dark", remember_theme=chosen.append))
    async with app.run_test() as pilot:
        for _ in THEME_NAMES:
            await pilot.press("T")
            assert app.theme == THEMES[app.themes.theme_name]
    assert chosen == ["light", "contrast", "ansi", "mono", "dark"]


@pytest.mark.parametrize("name", THEME_NAMES)
async def test_every_style_has_a_colour_in_every_theme(canned: ModuleType, dashboard: Dashboard, name: str) -> None:
    app = dashboard(canned.growing(), options=DashboardOptions(theme=name))
    async with app.run_test():
        visible_styles = {style: app.screen.get_visual_style(style).rich_style for style in STYLES}
    if name == "mono":
        assert {look.color.is_default for look in visible_styles.values() if look.color} == {True}
    else:
        assert len({str(look) for look in visible_styles.values()}) > 8


@pytest.mark.parametrize(
    ("colours", "environment", "theme"),
    [
        ("truecolor", {}, "dark"),
        ("256", {"NO_COLOR": ""}, "dark"),
        ("truecolor", {"NO_COLOR": "1"}, "mono"),
        ("standard", {}, "ansi"),
        ("windows", {}, "ansi"),
        (None, {}, "ansi"),
    ],
)
def test_the_terminal_decides_where_nobody_chose(colours: str | None, environment: dict[str, str], theme: str) -> None:
    assert default_theme(colours, environment) == theme


async def test_no_color_leaves_no_colour(
    canned: ModuleType, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = dashboard(canned.growing(), options=DashboardOptions(theme="dark"))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        colours = {colour for style in styles for colour in (style.color, style.bgcolor) if colour is not None}
    assert all(colour.is_default for colour in colours)


@pytest.mark.parametrize("key", ["ctrl+p", "colon"])
async def test_the_palette_finds_an_action_by_its_words(canned: ModuleType, dashboard: Dashboard, key: str) -> None:
    async with (app := dashboard(canned.growing())).run_test() as pilot:
        await pilot.press(key)
        assert isinstance(app.screen, CommandPalette)
        await pilot.press(*"All keys")
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        if not isinstance(app.screen, HelpScreen):
            await pilot.press("enter")
            await pilot.pause()
        assert isinstance(app.screen, HelpScreen)


def test_the_palette_lists_every_key_and_every_theme(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing())
    listed = [command.title for command in app.get_system_commands(app.get_default_screen())]
    assert set(listed) >= {key.tooltip for key in (*STEERING, *MOVING, *VIEWING)}
    assert set(listed) >= {f"Theme: {name}" for name in THEME_NAMES}


async def test_the_palette_does_what_only_the_screen_can_do(canned: ModuleType, dashboard: Dashboard) -> None:
    async with (app := dashboard(canned.growing())).run_test() as pilot:
        choosing = next(key for key in VIEWING if key.action == "next_panel(1)")
        listed = {command.title: command.callback for command in app.get_system_commands(app.screen)}
        assert app.screen.focused is None
        await listed[choosing.tooltip]()
        await pilot.pause()
        assert app.screen.focused is not None


async def test_reduced_motion_redraws_once_a_second_but_answers_keys_at_once(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = canned.growing(100.0)
    app = dashboard(run, options=DashboardOptions(reduced_motion=True))
    drawn: list[float] = []
    clock: Any = app.viewer.clock
    async with app.run_test() as pilot:
        start, whole = clock.now(), app.redraw

        def redraw() -> None:
            drawn.append(clock.now() - start)
            whole()

        monkeypatch.setattr(app, "redraw", redraw)
        for step in range(1, 41):
            run.now = 100.0 + step * 0.1
            clock.advance_to(start + step * 0.1)
            app.poll()
        assert 3 <= len(drawn) <= 5
        before = len(drawn)
        await pilot.press("up")
        assert len(drawn) > before
        assert app.animation_level == "none"
        await pilot.press("g")
        assert isinstance(app.focused, Input)
        assert not app.focused.cursor_blink


@pytest.mark.integration
async def test_ten_minutes_at_64_times_leave_no_memory_behind(canned: ModuleType) -> None:
    """Twice through the run: the second pass must not hold more than the first one did."""
    length, clock = 600.0, ManualClock()
    run = canned.finished()
    run.ticks, run.end = canned.ticks(seconds=length), None
    app = DashboardApp(run, clock=clock, start_at=0.0)
    held: list[int] = []
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(*["+"] * 6)
        assert app.viewer.view.playhead.speed == 64
        tracemalloc.start()
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
            held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert app.screen.query_one(ThroughputPanel).frame is not None
    assert held[2] - held[1] < 1_000_000


async def test_a_read_only_dashboard_names_no_steering_key_and_says_so_when_one_is_pressed(
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
            assert len(app.screen_stack) == 1, f"{key} asks a question"
            assert "▸ this page is read-only" in text_of(app, "#status"), key
            app.viewer.update_view(message="")
        await pilot.press("[")
        assert app.viewer.view.playhead.at < 110.0
        await pilot.press("end", "space")
        assert not app.viewer.view.playhead.following
        listed = [command.title for command in app.get_system_commands(app.screen)]
        assert not {key.tooltip for key in STEERING} & set(listed)
        await pilot.press("question_mark")
        assert not [line for line in app.screen.query_one(HelpText).render().plain.split("\n") if "Steer" in line]
    assert run.sent == []


async def test_a_question_is_answered_once_however_often_its_key_was_typed(
    canned: ModuleType, dashboard: Dashboard
) -> None:
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


async def test_a_dashboard_that_cannot_draw_ends_all_the_same_when_asked_to(
    canned: ModuleType, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DashboardApp, "_on_first_frame", lambda _: None)  # as when nobody takes what it draws
    app = dashboard(canned.growing(), options=DashboardOptions(exit_requested=lambda: "abandoned"))
    async with app.run_test() as pilot:
        while app.return_value is None:
            await pilot.pause(0.05)
    assert app.return_value == "abandoned"
