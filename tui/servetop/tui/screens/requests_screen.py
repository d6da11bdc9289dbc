"""The screens of the requests around a time, and of one request in detail."""

from __future__ import annotations

import math
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from servetop.core.events import RequestRecord
from servetop.tui.keys import hidden_bindings, line_bindings
from servetop.tui.panels.detail.requests import RequestsPanel
from servetop.tui.panels.detail.tokens import TokensPanel
from servetop.tui.screens.details import DetailScreen
from servetop.tui.screens.frame_screen import Controls, FrameScreen
from servetop.tui.state.frame import Frame
from servetop.tui.state.request_rows import COLUMNS


class RequestsScreen(DetailScreen):
    """Waterfall and table; the arrow keys select a request, Enter opens it."""

    tab = "requests"
    own_keys = (("↑ ↓", "choose"), ("Enter", "open"), ("s", "sort"), ("S", "reverse"), ("f", "failed only"))

    BINDINGS: ClassVar[list[BindingType]] = [
        *line_bindings("choose", "row"),
        *hidden_bindings(
            ("enter", "open", "open"),
            ("s", "sort", "sort by the next column"),
            ("S", "reverse", "reverse the order"),
            ("f", "failed_only", "failed ones only"),
        ),
    ]

    def panels(self) -> ComposeResult:
        yield RequestsPanel(id="requests")

    @property
    def _panel(self) -> RequestsPanel:
        return self.query_one(RequestsPanel)

    def action_choose(self, rows: int) -> None:
        """Move the selection down (positive) or up by rows."""
        self._panel.choose(rows)

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._arrange(order=COLUMNS[(COLUMNS.index(self._panel.order) + 1) % len(COLUMNS)])

    def action_reverse(self) -> None:
        """Reverse the order."""
        self._arrange(descending=not self._panel.descending)

    def action_failed_only(self) -> None:
        """Show failed requests only, or all."""
        self._arrange(failed_only=not self._panel.failed_only)

    def _arrange(self, **changes: object) -> None:
        for name, value in changes.items():
            setattr(self._panel, name, value)
        self._panel.show_again()

    def action_open(self) -> None:
        """Show the tokens of the selected request."""
        record, frame = self._panel.chosen(), self._panel.frame
        if record is None or frame is None:
            return
        if record.done_at == math.inf:
            self.controls.say("this request is in flight: it can be opened when it has ended")
        else:
            self.app.push_screen(RequestScreen(frame, self.controls, record))


class RequestScreen(FrameScreen):
    """One request, which does not change with the playhead."""

    tab = "requests"

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter", "leave", "back")]

    def __init__(self, first: Frame, controls: Controls, record: RequestRecord) -> None:
        super().__init__(first, controls)
        self._record = record

    def panels(self) -> ComposeResult:
        yield TokensPanel(self._record, id="tokens")

    def action_leave(self) -> None:
        """Close this screen; no effect on the screen below if the key is typed twice."""
        if self.is_current:
            self.app.pop_screen()
