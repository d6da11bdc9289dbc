"""The live screen: everything at a glance."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Grid

from servetop.tui.panels.alert import AlertPanel, alert_text
from servetop.tui.panels.diagnosis import DiagnosisLine
from servetop.tui.panels.footer import KeyLine, StatusLine
from servetop.tui.panels.gpu import GpuPanel
from servetop.tui.panels.header import HeaderLine
from servetop.tui.panels.heat import HeatPanel
from servetop.tui.panels.kv import KvPanel
from servetop.tui.panels.latency import LatencyPanel
from servetop.tui.panels.load import LoadPanel
from servetop.tui.panels.log import LogPanel
from servetop.tui.panels.preemptions import PreemptionsPanel
from servetop.tui.panels.queue import QueuePanel
from servetop.tui.panels.throughput import ThroughputPanel
from servetop.tui.panels.timeline import TimelinePanel
from servetop.tui.panels.too_small import NEEDED, TooSmall
from servetop.tui.panels.trust import TrustPanel
from servetop.tui.panels.ttft import TtftPanel
from servetop.tui.run_so_far import Moment
from servetop.tui.screens.choosing import Choosing


class LiveScreen(Choosing):
    """All panels; which are shown, and where, is the style sheet's business, by the terminal's size."""

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual declares it
        (0, "-too-narrow"), (NEEDED[0], "-narrow"), (100, "-medium"), (150, "-broad"), (180, "-wide"),
    ]  # fmt: skip
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual declares it
        (0, "-too-low"), (NEEDED[1], "-low"), (23, "-short"), (34, "-tall"), (54, "-very-tall"),
    ]  # fmt: skip

    def compose(self) -> ComposeResult:
        """In reading order: the client's side, the engine's, the machine's, then what happened."""
        yield HeaderLine(id="header")
        yield DiagnosisLine(id="diagnosis")
        yield AlertPanel(id="alert")
        with Grid(id="panels"):
            yield LoadPanel(id="load")
            yield ThroughputPanel(id="throughput")
            yield LatencyPanel(id="latency")
            yield HeatPanel(id="heat")
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

    def show(self, moment: Moment) -> None:
        """Also arrange the panels for booting, for an error, and for a machine without a GPU."""
        self.set_class(moment.booting, "-booting")
        self.set_class(bool(alert_text(moment)), "-alert")
        self.set_class(moment.view.heat, "-heat")
        self.set_class(not moment.stats.gpus, "-no-gpu")
        super().show(moment)
