"""The row of tabs: the screens behind the number keys, and which of them is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual import events
from textual.message import Message

from servetop.tui.drawing.text_runs import Run, TextRow, fitted, row_width, shortened
from servetop.tui.keys import ALL_TABS, OF_CLIENTS, SEARCH_TITLE, SWEEP, TABS, Tab
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

_LONG = 8
"""Letters from which on a title is abbreviated if there is no room."""
_SHORTEST = 3
"""Letters of a cut title, at least."""


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
        return [fitted([run for part in self.parts(width) for run in part], width)]

    def parts(self, width: int) -> list[TextRow]:
        """Return one part per tab; none if something else is shown instead."""
        return draw_tabs(tabs_of(self.frame, self._shown), self._shown, width)

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        screen = (
            None if at is None else tab_at(self.parts(self.size.width), at.x, tabs=tabs_of(self.frame, self._shown))
        )
        if screen is not None:
            self.post_message(self.Chosen(screen))


def tabs_of(frame: Frame | None, shown: str) -> Sequence[Tab]:
    """Return the tabs, with the comparison only if there is a baseline or that screen is shown.

    The screen of the sweep is another one for a search.
    """
    tabs = ALL_TABS if shown == ALL_TABS[-1].screen or (frame is not None and frame.against) else TABS
    if frame is not None and frame.watched:
        return [tab for tab in tabs if tab.screen not in OF_CLIENTS]
    if frame is None or frame.search is None:
        return tabs
    return [replace(tab, title=SEARCH_TITLE) if tab.screen == SWEEP else tab for tab in tabs]


def draw_tabs(tabs: Sequence[Tab], shown: str, width: int) -> list[TextRow]:
    """One part per tab, the shown one marked; if there is no room, first the titles of the others are shortened."""
    drawings = _drawings(tabs, shown)
    return next((parts for parts in drawings if sum(row_width(part) for part in parts) <= width), drawings[-1])


def _drawings(tabs: Sequence[Tab], shown: str) -> list[list[TextRow]]:
    """From the widest to the narrowest."""
    full = {tab.screen: tab.title for tab in tabs}
    short = {tab.screen: _abbreviated(tab.title) for tab in tabs}
    cuts = [{name: shortened(title, letters) for name, title in short.items()} for letters in range(7, _SHORTEST, -1)]
    titles = [full, short | {shown: full.get(shown, "")}, short, *cuts]
    return [[_part(tab, shown, each[tab.screen], gap) for tab in tabs] for each in titles for gap in (2, 1, 0)]


def _abbreviated(title: str) -> str:
    """`Config.` for `Configuration`, `Batch` for `Batch film`; titles of up to 8 letters stay."""
    word = title if len(title) <= _LONG else title.partition(" ")[0]
    return word if len(word) <= _LONG else f"{word[:6]}."


def _part(tab: Tab, shown: str, title: str, gap: int) -> list[Run]:
    here = tab.screen == shown
    mark: Run = ("▸", "cursor") if here else (" ", "")
    return [mark, (tab.digit, "key"), (f" {title}", "title" if here else "muted"), (" " * gap, "")]


def tab_at(parts: Sequence[TextRow], column: int, *, tabs: Sequence[Tab] = ALL_TABS) -> str | None:
    """Return the screen of the tab that is drawn at a column; None right of all, or if there are none."""
    end = 0
    for tab, part in zip(tabs, parts, strict=False):
        end += row_width(part)
        if column < end:
            return tab.screen
    return None
