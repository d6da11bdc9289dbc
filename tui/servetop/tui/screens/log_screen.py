"""The log screen: the logs of engine and servetop on the whole screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from servetop.tui.keys import hidden_bindings, line_bindings
from servetop.tui.panels.detail.log_view import LogView
from servetop.tui.screens.frame_screen import FrameScreen
from servetop.tui.screens.modal import Modal, PlainText


class LogScreen(FrameScreen):
    """Scrolls by line and page, and follows the end. `n` goes to the next match here, not to the next stage."""

    tab = "log"
    own_keys = (
        ("↑ ↓", "scroll"),
        ("w", "wrap"),
        ("v", "level"),
        ("/", "search"),
        ("n N", "older/newer match"),
        ("PgUp PgDn", "page"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,l", "app.show_screen('live')", "close"),
        *line_bindings("scroll_log", "line"),
        Binding("v", "next_level", "level", tooltip="All lines, warnings and errors, errors only"),
        Binding("slash", "search", "search", tooltip="Find lines that contain a text, ignoring case"),
        Binding("w", "toggle_wrap", "wrap", tooltip="Wrap long lines, or cut them"),
        *hidden_bindings(("n", "go_to_match(-1)", "older match"), ("N", "go_to_match(1)", "newer match")),
    ]

    def panels(self) -> ComposeResult:
        yield LogView(id="whole-log")

    def action_scroll_log(self, lines: int) -> None:
        """Scroll down (positive) or up by lines."""
        self.query_one(LogView).scroll(-lines)

    def action_next_level(self) -> None:
        """Select the next level."""
        self.query_one(LogView).next_level()

    def action_toggle_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self.query_one(LogView).toggle_wrap()

    def action_go_to_match(self, direction: int) -> None:
        """Go to the next older (-1) or newer (1) match."""
        self.query_one(LogView).go_to_match(direction)

    def action_search(self) -> None:
        """Ask for a query, starting from the last one."""
        log = self.query_one(LogView)
        self.app.push_screen(
            SearchQuestion(log.search_text), lambda query: None if query is None else log.search(query)
        )


class SearchQuestion(Modal[str]):
    """One line of text; empty ends the search; the result of Escape is None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "go back")]

    def __init__(self, query: str) -> None:
        super().__init__()
        self._query = query

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield PlainText("Search the log for:", classes="question")
            yield Input(self._query, max_length=120, compact=True)
            yield PlainText("enter searches, an empty query ends the search, esc goes back", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())
