"""The screen of the comparison with the baseline."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Grid

from servetop.tui.keys import line_bindings
from servetop.tui.panels.detail.changes import ChangesPanel
from servetop.tui.panels.detail.comparison import ComparisonPanel
from servetop.tui.panels.detail.load_curve_panel import LoadCurvePanel
from servetop.tui.screens.details import DetailScreen


class ComparisonScreen(DetailScreen):
    """What differs between both runs, their curves over the load, and the verdict on every metric of every stage."""

    tab = "comparison"
    own_keys = (("↑ ↓", "scroll"), ("PgUp PgDn", "page"), ("t", "latency"))
    VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-tall")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [*line_bindings("scroll_rows", "line")]

    def panels(self) -> ComposeResult:
        yield ChangesPanel(id="changes")
        with Grid(id="load-curves"):
            yield LoadCurvePanel("throughput", id="throughput-curve")
            yield LoadCurvePanel("latency", id="latency-curve")
        yield ComparisonPanel(id="comparison")

    def action_scroll_rows(self, lines: int) -> None:
        """Scroll down (positive) or up by lines."""
        self.query_one(ComparisonPanel).scroll(lines)
