"""Themes, the command palette and reduced motion."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from rich.color import Color
from textual.command import CommandList, CommandPalette
from textual.widgets import Input

from servetop.tui.app import DashboardApp
from servetop.tui.drawing.palette import STYLES, THEME_NAMES
from servetop.tui.keys import MOVING, STEERING, VIEWING, palette_title
from servetop.tui.options import DashboardOptions
from servetop.tui.screens.help import HelpScreen
from servetop.tui.themes import THEMES, default_theme

Dashboard = Callable[..., DashboardApp]
TextOf = Callable[[DashboardApp, str], str]


async def test_the_theme_key_cycles_and_each_theme_is_remembered(canned: ModuleType, dashboard: Dashboard) -> None:
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
def test_the_default_theme_depends_on_the_terminal(
    colours: str | None, environment: dict[str, str], theme: str
) -> None:
    assert default_theme(colours, environment) == theme


async def test_no_color_disables_colours(
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


def colours_of(app: DashboardApp) -> set[Color]:
    styles = [segment.style for strip in app.screen._compositor.render_strips() for segment in strip if segment.style]
    return {colour for style in styles for colour in (style.color, style.bgcolor) if colour is not None}


@pytest.mark.parametrize("key", list("12346"))
async def test_no_screen_has_a_colour_in_mono(canned: ModuleType, dashboard: Dashboard, key: str) -> None:
    app = dashboard(canned.growing(), options=DashboardOptions(theme="mono"))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(key)
        assert {colour.is_default for colour in colours_of(app)} == {True}


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48)])
async def test_mono_has_no_colour_whether_it_was_chosen_at_the_start_or_by_key(
    canned: ModuleType, dashboard: Dashboard, size: tuple[int, int]
) -> None:
    at_start = dashboard(canned.growing(), options=DashboardOptions(theme="mono"))
    by_key = dashboard(canned.growing(), options=DashboardOptions(theme="dark"))
    async with at_start.run_test(size=size) as pilot:
        await pilot.pause()
        assert {colour.is_default for colour in colours_of(at_start)} == {True}
    async with by_key.run_test(size=size) as pilot:
        while by_key.themes.theme_name != "mono":
            await pilot.press("T")
        await pilot.pause()
        assert {colour.is_default for colour in colours_of(by_key)} == {True}


@pytest.mark.parametrize("key", ["ctrl+p", "colon"])
async def test_the_palette_finds_an_action_by_its_text(canned: ModuleType, dashboard: Dashboard, key: str) -> None:
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
    again = {"command_palette", "quit"}
    texts = {title[len(palette_title("", "", "")) :] for title in listed}
    assert texts >= {key.tooltip for key in (*STEERING, *MOVING, *VIEWING) if key.action not in again}
    assert texts >= {*THEME_NAMES}
    assert len(texts) == len(listed)


async def test_the_palette_is_grouped_by_what_its_entries_act_on(canned: ModuleType, dashboard: Dashboard) -> None:
    async with (app := dashboard(canned.growing())).run_test(size=(120, 40)) as pilot:
        await pilot.press("colon")
        await app.workers.wait_for_complete()
        await pilot.pause()
        shown = [str(option.prompt) for option in app.screen.query_one(CommandList).options]
        groups = [text.split(maxsplit=1)[0] for text in shown]
        in_order = [group for group, _ in itertools.groupby(groups)]
        assert in_order == ["Load", "Time", "View", "Screens", "Recording", "servetop", "Theme"]
        assert not any(ord(letter) > 0xFFFF for text in shown for letter in text)


async def test_the_palette_runs_actions_of_the_screen(canned: ModuleType, dashboard: Dashboard) -> None:
    async with (app := dashboard(canned.growing())).run_test() as pilot:
        choosing = next(key for key in VIEWING if key.action == "next_panel(1)")
        listed = {command.title: command.callback for command in app.get_system_commands(app.screen)}
        assert app.screen.focused is None
        await listed[palette_title("View", "Tab", choosing.tooltip)]()
        await pilot.pause()
        assert app.screen.focused is not None


async def test_reduced_motion_redraws_once_a_second_but_at_once_after_a_key(
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
