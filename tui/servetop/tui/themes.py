"""Themes of the dashboard: the short names that users know, and the Textual themes behind them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from textual.app import App
from textual.theme import BUILTIN_THEMES, Theme

from servetop.tui.drawing.palette import THEME_NAMES

_TEXTUAL_NAMES = ("textual-dark", "textual-light", "servetop-contrast", "ansi-dark", "servetop-mono")
THEMES = dict(zip(THEME_NAMES, _TEXTUAL_NAMES, strict=True))
"""Textual's theme name by short name."""


def no_color_requested(environment: Mapping[str, str]) -> bool:
    """Whether NO_COLOR is set and not empty (no-color.org)."""
    return bool(environment.get("NO_COLOR"))


def default_theme(color_system: str | None, environment: Mapping[str, str]) -> str:
    """`mono` if NO_COLOR is set, `ansi` on a terminal of 16 colours or fewer, else `dark`."""
    if no_color_requested(environment):
        return "mono"
    return "ansi" if color_system in (None, "standard", "windows") else "dark"


class Themes:
    """Selects the theme of an app; its style sheet distinguishes themes by the app's classes, such as `-mono`."""

    def __init__(self, app: App[Any], *, chosen: str = "") -> None:
        """`chosen` is a short name; empty keeps Textual's default until `adapt_to_terminal`. NO_COLOR overrides it."""
        self._app = app
        self._chosen = chosen
        for theme in _own_themes():
            app.register_theme(theme)
        no_color = no_color_requested(os.environ)
        if chosen or no_color:
            self.set_theme("mono" if no_color else chosen)

    @property
    def theme_name(self) -> str:
        """The short name of the current theme; `dark` for one that has none."""
        return next((short for short, name in THEMES.items() if name == self._app.theme), "dark")

    @property
    def next_name(self) -> str:
        """The short name of the theme after the current one; the first follows the last."""
        names = list(THEMES)
        return names[(names.index(self.theme_name) + 1) % len(names)]

    def set_theme(self, name: str) -> None:
        """Apply a theme, by its short name."""
        for short in THEMES:
            self._app.set_class(short == name, f"-{short}")
        self._app.theme = THEMES[name]

    def forget_styles(self) -> None:
        """Repaint everything with the styles of the current theme.

        Textual forgets the styles of widgets whose own rules changed, not those of the style names in their drawings.
        """
        for screen in self._app.screen_stack:
            for widget in (screen, *screen.query("*")):
                widget.notify_style_update()
                widget.refresh()

    def adapt_to_terminal(self) -> None:
        """Apply the default theme for this terminal, unless one was chosen."""
        if not self._chosen:
            self.set_theme(default_theme(self._app.console.color_system, os.environ))


def _own_themes() -> tuple[Theme, ...]:
    plain = "ansi_default"
    hues = {"primary": plain, "secondary": plain, "warning": plain, "error": plain, "success": plain, "accent": plain}
    mono: Theme = replace(BUILTIN_THEMES["ansi-dark"], name=THEMES["mono"], **hues)  # type: ignore[arg-type]
    contrast = Theme(
        name=THEMES["contrast"],
        primary="#ffffff",
        secondary="#ffffff",
        accent="#ffff00",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#000000",
        boost="#000000",
        warning="#ffd000",
        error="#ff8080",
        success="#40ff90",
        dark=True,
        text_alpha=1.0,
    )
    return contrast, mono
