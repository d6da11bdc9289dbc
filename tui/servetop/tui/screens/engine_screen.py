"""The screen of the engine page: everything that the engine exports and no panel shows."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from servetop.tui.keys import line_bindings
from servetop.tui.panels.detail.engine_metrics import EngineMetricsPanel
from servetop.tui.screens.details import DetailScreen


class EngineScreen(DetailScreen):
    """The engine page; scrolls."""

    tab = "engine"
    own_keys = (("↑ ↓", "scroll"), ("PgUp PgDn", "page"))
    time_axis = True
    BINDINGS: ClassVar[list[BindingType]] = [*line_bindings("scroll_metrics", "line")]

    def panels(self) -> ComposeResult:
        yield EngineMetricsPanel(id="engine-page")

    def action_scroll_metrics(self, lines: int) -> None:
        """Scroll down (positive) or up by lines."""
        self.query_one(EngineMetricsPanel).scroll(lines)
