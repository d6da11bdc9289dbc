"""The row of tabs: the screens behind the number keys, and which of them is shown."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from servetop.tui.drawing.text_runs import Run, TextRow, fitted, row_width, shortened
from servetop.tui.keys import TABS, Tab
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

_SHORTEST = 4
"""Letters of a shortened title, at least."""


class TabLine(Panel):
    """One row; a click on a tab shows its screen."""

    class Chosen(Message):
        """A click on a tab."""

        def __init__(self, screen: str) -> None:
            """`screen` as in `show_screen`."""
            super().__init__()
            self.screen = screen

    def __init__(self, shown: str, *, id: str) -> None:
        """`shown`: the name of the screen that this row is on."""
        super().__init__(id=id)
        self._shown = shown

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        return [fitted([run for part in draw_tabs(TABS, self._shown, width) for run in part], width)]

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        screen = None if at is None else tab_at(draw_tabs(TABS, self._shown, self.size.width), at.x)
        if screen is not None:
            self.post_message(self.Chosen(screen))


def draw_tabs(tabs: Sequence[Tab], shown: str, width: int) -> list[TextRow]:
    """One part per tab, the shown one marked; titles of the others are shortened equally if there is no room."""
    longest = max(len(tab.title) for tab in tabs)
    for letters in range(longest, _SHORTEST - 1, -1):
        for gap in (2, 1, 0):
            parts: list[TextRow] = [_part(tab, shown, letters, gap) for tab in tabs]
            if sum(row_width(part) for part in parts) <= width:
                return parts
    return [_part(tab, shown, _SHORTEST, 0) for tab in tabs]


def _part(tab: Tab, shown: str, letters: int, gap: int) -> list[Run]:
    if tab.screen == shown:
        return [("▸", "cursor"), (tab.digit, "key"), (f" {tab.title}", "title"), (" " * gap, "")]
    return [(" ", ""), (tab.digit, "key"), (f" {shortened(tab.title, letters)}", "muted"), (" " * gap, "")]


def tab_at(parts: Sequence[TextRow], column: int) -> str | None:
    """The screen of the tab that is drawn at a column; None right of all."""
    end = 0
    for tab, part in zip(TABS, parts, strict=True):
        end += row_width(part)
        if column < end:
            return tab.screen
    return None
