"""The live screen: every panel that fits the terminal."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Grid
from textual.geometry import Size
from textual.widget import Widget

from servetop.tui.drawing.text_runs import Lines, placard
from servetop.tui.panels.footer import KeyLine, StatusLine
from servetop.tui.panels.header import HeaderLine
from servetop.tui.panels.live.alert import AlertPanel, alert_text
from servetop.tui.panels.live.diagnosis import DiagnosisLine
from servetop.tui.panels.live.engine_latency import EngineLatencyPanel
from servetop.tui.panels.live.gpu import GpuPanel
from servetop.tui.panels.live.kv import KvPanel
from servetop.tui.panels.live.latency import LatencyPanel
from servetop.tui.panels.live.latency_heat import HeatPanel
from servetop.tui.panels.live.load import LoadPanel
from servetop.tui.panels.live.log import LogPanel
from servetop.tui.panels.live.preemptions import PreemptionsPanel
from servetop.tui.panels.live.queue import QueuePanel
from servetop.tui.panels.live.story_card import StoryCard, card_shown, quotes
from servetop.tui.panels.live.throughput import ThroughputPanel
from servetop.tui.panels.live.timeline import TimelinePanel
from servetop.tui.panels.live.trust import TrustPanel
from servetop.tui.panels.live.ttft import TtftPanel
from servetop.tui.screens.frame_screen import Controls
from servetop.tui.screens.panel_focus import PanelFocus
from servetop.tui.state.frame import Frame

NEEDED = (60, 16)
"""Columns and rows below which the dashboard is not drawn."""


class TooSmall(Widget):
    """Shows the size of the terminal and the size required."""

    def render(self) -> Lines:
        width, height = self.size
        columns, rows = NEEDED
        text = f"terminal too small: {width}×{height}, servetop needs {columns}×{rows}"
        return Lines(placard(text, width=width, height=height, style="warn"))


class LiveScreen(PanelFocus):
    """All panels; the style sheet selects and places them by the terminal's size."""

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual declares it
        (0, "-too-narrow"),
        (NEEDED[0], "-narrow"),
        (100, "-medium"),
        (150, "-broad"),
        (180, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual declares it
        (0, "-too-low"),
        (NEEDED[1], "-low"),
        (23, "-short"),
        (34, "-tall"),
        (54, "-very-tall"),
    ]

    def __init__(self, first: Frame, controls: Controls, *, size: Size) -> None:
        super().__init__(first, controls, size=size, classes=[name for name, given in _classes(first).items() if given])

    def compose(self) -> ComposeResult:
        yield HeaderLine(id="header")
        yield DiagnosisLine(id="diagnosis")
        yield AlertPanel(id="alert")
        yield StoryCard(id="story")
        with Grid(id="panels"):
            yield LoadPanel(id="load")
            yield ThroughputPanel(id="throughput")
            yield LatencyPanel(id="latency")
            yield HeatPanel(id="heat")
            yield EngineLatencyPanel(id="engine-latency")
            yield KvPanel(id="kv")
            yield QueuePanel(id="queue")
            yield PreemptionsPanel(id="preemptions")
            yield TrustPanel(id="trust")
            yield TtftPanel(id="where-ttft")
            yield GpuPanel(id="gpu")
            yield LogPanel(id="log")
            yield TimelinePanel(id="timeline")
        yield StatusLine(id="status")
        yield KeyLine(id="keys")
        yield TooSmall(id="too-small")

    def show(self, frame: Frame) -> None:
        """Draw a frame, and rearrange the panels if needed."""
        for name, given in _classes(frame).items():
            self.set_class(given, name)
        super().show(frame)

    def action_arrow(self, direction: int) -> None:
        """Select the previous (-1) or next (1) line of the story, or watched server; without these, change the rate."""
        if self.query_one(StoryCard).display:
            self.controls.playback.step_story_line(direction)
        elif not self.controls.fleet.step(direction):
            super().action_arrow(direction)

    def action_maximise(self) -> None:
        """Go to the time of the story's selected line, or open the selected server; with a selected panel, maximise."""
        if self.focused is None and self.query_one(StoryCard).display:
            self.controls.playback.go_to_story_line()
        elif self.focused is not None or not self.controls.fleet.open():
            super().action_maximise()

    def on_story_card_chosen(self, message: StoryCard.Chosen) -> None:
        self.controls.playback.select_story_line(message.line)
        self.controls.playback.go_to_story_line()


def _classes(frame: Frame) -> dict[str, bool]:
    """Return the classes by which the style sheet arranges the panels: start-up, error, story, heat map, no GPU."""
    alert = alert_text(frame)
    return {
        "-booting": frame.booting,
        "-watch": frame.watched and not frame.booting,
        "-fleet": frame.watches_several and not frame.booting,
        "-alert": bool(alert) and not quotes(frame, alert),
        "-story": card_shown(frame),
        "-heat": frame.view.heat,
        "-no-gpu": not frame.stats.gpus,
    }
