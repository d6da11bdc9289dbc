"""How the dashboard looks and moves: themes, reduced motion, and the palette that lists every action."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from textual.app import App, SystemCommand
from textual.driver import Driver
from textual.events import DescendantFocus
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES, Theme
from textual.widgets import Input

from servetop.core.events import Note
from servetop.core.interfaces.recording_store import RecordingStore
from servetop.tui.drawing.palette import THEME_NAMES
from servetop.tui.keys import tables
from servetop.tui.terminal_output import sgr_shortening_driver

_TEXTUAL_NAMES = ("textual-dark", "textual-light", "servetop-contrast", "ansi-dark", "servetop-mono")
THEMES = dict(zip(THEME_NAMES, _TEXTUAL_NAMES, strict=True))
"""What people call a theme, and what Textual calls it."""
CALM_REDRAW_SECONDS = 1.0
"""Between two frames with reduced motion, unless a key asks for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardOptions:
    """What a dashboard has besides its run."""

    store: RecordingStore | None = None
    """Other recordings to open; None: there is no browser."""
    browse: bool = False
    """Open the browser first."""
    theme: str = ""
    """One of THEMES; empty: what suits the terminal."""
    reduced_motion: bool = False
    """Redraw once a second, and nothing blinks or glides."""
    remember_theme: Callable[[str], None] | None = None
    """Told of every theme that the person chooses."""
    exit_requested: Callable[[], str] | None = None
    """Asked twenty times a second; the dashboard ends with its first answer that is not empty."""
    read_only: bool = False
    """Keys steer no run, rename and delete no recording."""
    unrecorded: Callable[[], Sequence[Note]] | None = None
    """Asked as often: new notes of the run that the dashboard owns, which its recording may not take."""
    shown: Callable[[], None] | None = None
    """Called when the first frame is drawn."""


def default_theme(color_system: str | None, environment: Mapping[str, str]) -> str:
    """`mono` where NO_COLOR asks for it (no-color.org), `ansi` on a terminal of 16 colours or fewer, else `dark`."""
    if environment.get("NO_COLOR"):
        return "mono"
    return "ansi" if color_system in (None, "standard", "windows") else "dark"


class Appearance(App[str]):
    """The part of the dashboard that knows about themes."""

    def __init__(self, options: DashboardOptions) -> None:
        no_color = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if no_color else None)  # else NO_COLOR would become shades of grey
        self.options = options
        if options.reduced_motion:
            self.animation_level = "none"
        for theme in _own_themes():
            self.register_theme(theme)
        if options.theme or no_color:
            self.set_theme("mono" if no_color else options.theme)

    def get_driver_class(self) -> type[Driver]:
        """The platform's, with less output."""
        return sgr_shortening_driver(super().get_driver_class())

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Fields blink unless motion is unwelcome."""
        if self.options.reduced_motion and isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    def set_theme(self, name: str) -> None:
        """Put a theme on, by its short name."""
        for short in THEMES:
            self.set_class(short == name, f"-{short}")
        self.theme = THEMES[name]

    def adapt_to_terminal(self) -> None:
        """Put on what suits the terminal, unless a theme was asked for."""
        if not self.options.theme:
            self.set_theme(default_theme(self.console.color_system, os.environ))

    @property
    def theme_name(self) -> str:
        """The short name of the theme in force; `dark` for one that has none."""
        return next((short for short, name in THEMES.items() if name == self.theme), "dark")

    def show_message(self, text: str) -> None:
        """One line for a few seconds, at the bottom."""
        raise NotImplementedError

    def action_next_theme(self) -> None:
        """The next theme; after the last, the first."""
        names = list(THEMES)
        self.action_set_theme(names[(names.index(self.theme_name) + 1) % len(names)])

    def action_set_theme(self, name: str) -> None:
        """A theme that was chosen; it is remembered."""
        self.set_theme(name)
        if self.options.remember_theme is not None:
            self.options.remember_theme(name)
        self.show_message(f"theme: {name}")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the palette lists: every key with what it does, then the themes."""
        for key in itertools.chain.from_iterable(tables(read_only=self.options.read_only).values()):
            ours = hasattr(self, f"action_{key.action.partition('(')[0]}")  # else the screen's: choosing a panel
            run = partial(self.run_action, key.action, self if ours else screen)
            yield SystemCommand(key.tooltip, f"key {key.caption}", run)
        for name in THEMES:
            yield SystemCommand(f"Theme: {name}", "key T goes through them", partial(self.action_set_theme, name))


def _own_themes() -> tuple[Theme, ...]:
    plain = "ansi_default"
    hues = {"primary": plain, "secondary": plain, "warning": plain, "error": plain, "success": plain, "accent": plain}
    mono: Theme = replace(BUILTIN_THEMES["ansi-dark"], name=THEMES["mono"], **hues)  # type: ignore[arg-type]
    contrast = Theme(
        name=THEMES["contrast"], primary="#ffffff", secondary="#ffffff", accent="#ffff00", foreground="#ffffff",
        background="#000000", surface="#000000", panel="#000000", boost="#000000", warning="#ffd000", error="#ff8080",
        success="#40ff90", dark=True, text_alpha=1.0,
    )  # fmt: skip
    return contrast, mono
