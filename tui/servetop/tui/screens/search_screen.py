"""The screen of a search: its answer, its loads, and how the answer became narrower."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Grid

from servetop.tui.keys import SWEEP, hidden_bindings, line_bindings
from servetop.tui.panels.search.answer import AnswerPanel
from servetop.tui.panels.search.interval import IntervalPanel
from servetop.tui.panels.search.searched_loads import LoadsChart, LoadsTable, ObjectivePanel
from servetop.tui.screens.details import DetailScreen


class SearchScreen(DetailScreen):
    """The answer as of the playhead, the loads that were tried, and what is tried now."""

    tab = SWEEP
    own_keys = (("↑ ↓", "scroll"), ("t", "objective"))
    BINDINGS: ClassVar[list[BindingType]] = [
        *line_bindings("scroll_rows", "line"),
        *hidden_bindings(("t", "next_objective", "next objective")),
    ]

    def panels(self) -> ComposeResult:
        yield AnswerPanel(id="search-answer")
        with Grid(id="search-charts"):
            yield LoadsChart(id="search-loads")
            yield IntervalPanel(id="search-interval")
        yield LoadsTable(id="search-table")

    def action_scroll_rows(self, lines: int) -> None:
        """Scroll the table down (positive) or up by lines."""
        self.query_one(LoadsTable).scroll(lines)

    def action_next_objective(self) -> None:
        """Show the next objective; after the last one, the one that sets the answer."""
        for panel in self.query(ObjectivePanel):
            panel.show_next_objective()
