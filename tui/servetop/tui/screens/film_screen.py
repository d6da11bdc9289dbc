"""The batch film's screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from servetop.tui.keys import hidden_bindings, line_bindings
from servetop.tui.panels.detail.batch_film import BatchFilmPanel
from servetop.tui.screens.details import DetailScreen
from servetop.tui.screens.requests_screen import RequestScreen
from servetop.tui.state.frame import Frame


class BatchFilmScreen(DetailScreen):
    """Slots of the batch by time; the arrow keys select a slot, Enter opens the request at the cursor."""

    tab = "film"
    own_keys = (("↑ ↓", "slot"), ("Enter", "open request"), ("c", "cursor"), ("z", "zoom"))
    BINDINGS: ClassVar[list[BindingType]] = [
        *line_bindings("choose", "slot"),
        *hidden_bindings(("enter", "open", "open")),
    ]

    def panels(self) -> ComposeResult:
        yield BatchFilmPanel(id="film")

    @property
    def _panel(self) -> BatchFilmPanel:
        return self.query_one(BatchFilmPanel)

    def show(self, frame: Frame) -> None:
        self._panel.colours = not self.app.has_class("-mono")
        super().show(frame)

    def action_choose(self, rows: int) -> None:
        """Move the selection down (positive) or up by slots."""
        self._panel.choose(rows)

    def action_open(self) -> None:
        """Show the tokens of the request in the selected slot."""
        record, frame = self._panel.chosen(), self._panel.frame
        if record is not None and frame is not None:
            self.app.push_screen(RequestScreen(frame, self.controls, record))

    def on_batch_film_panel_opened(self) -> None:
        self.action_open()
