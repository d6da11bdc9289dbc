"""The screens of distributions, sweep and configuration."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid
from textual.geometry import Size

from servetop.tui.drawing.distributions import constant_value
from servetop.tui.keys import hidden_bindings, line_bindings
from servetop.tui.panels.detail.cdf import CdfPanel, StageLegend
from servetop.tui.panels.detail.config import ConfigPanel, shown_rows
from servetop.tui.panels.detail.sweep import CurvePanel, SweepPanel
from servetop.tui.screens.frame_screen import Controls, FrameScreen
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import LENGTHS, METRICS

_CONSTANT = "-constant"


class DetailScreen(FrameScreen):
    """A screen above the live one; Escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.show_screen('live')", "back")]


class DistributionsScreen(DetailScreen):
    """A distribution of each latency by stage, and of lengths if there is room."""

    tab = "distributions"
    own_keys = (("h", "ridges/curves"),)
    BINDINGS: ClassVar[list[BindingType]] = [*hidden_bindings(("h", "app.curves", "ridges or cumulative curves"))]

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (150, "-broad")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-tall")]  # noqa: RUF012

    def __init__(self, first: Frame, controls: Controls, *, size: Size) -> None:
        super().__init__(first, controls, size=size, classes=[_CONSTANT] if _lengths_are_constant(first) else [])

    def show(self, frame: Frame) -> None:
        """Draw a frame; lengths that do not vary get one row only."""
        self.set_class(_lengths_are_constant(frame), _CONSTANT)
        super().show(frame)

    def panels(self) -> ComposeResult:
        yield StageLegend(id="legend")
        with Grid(id="distributions"):
            for metric in METRICS:
                yield CdfPanel(metric)


class SweepScreen(DetailScreen):
    """Throughput by batch size × request rate, and the throughput-latency curve."""

    tab = "sweep"
    own_keys = (("t", "latency or goodput"),)
    has_goodput = True

    def panels(self) -> ComposeResult:
        yield SweepPanel(id="sweep")
        yield CurvePanel(id="curve")


class ConfigScreen(DetailScreen):
    """All settings; scrolls."""

    tab = "config"
    own_keys = (("↑ ↓", "scroll"), ("PgUp PgDn", "page"))

    BINDINGS: ClassVar[list[BindingType]] = [*line_bindings("scroll_config", "line")]

    def panels(self) -> ComposeResult:
        yield ConfigPanel(id="config")

    def action_scroll_config(self, lines: int) -> None:
        """Scroll down (positive) or up by lines."""
        panel = self.query_one(ConfigPanel)
        if panel.frame is not None:
            most = max(0, len(shown_rows(panel.frame, panel.size.width)) - panel.size.height)
            panel.top = min(max(panel.top + lines, 0), most)
            panel.watch_frame(panel.frame)


def _lengths_are_constant(frame: Frame) -> bool:
    lengths = [each.histograms[metric] for each in frame.per_stage() for metric in LENGTHS]
    return all(constant_value(each) is not None for each in lengths if each.count)
