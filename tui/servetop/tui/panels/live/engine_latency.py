"""The latencies of a watched server by the engine's own histograms: values of the window, and trends."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.quantities import value_text
from servetop.tui.drawing.text_runs import TextRow, fitted, placard
from servetop.tui.drawing.trend import trend_text
from servetop.tui.panels.panel import Panel
from servetop.tui.state.engine_page import EnginePage, MetricLine
from servetop.tui.state.fleet_table import fleet_rows
from servetop.tui.state.frame import Frame

SHOWN = {"TTFT": "TTFT", "ITL": "ITL", "TPOT": "TPOT", "E2EL": "E2EL", "time in the queue": "queued"}
"""Names on the engine page of the latencies that are shown, the most important first, and their names here."""
_NAME, _VALUE = 7, 18


class EngineLatencyPanel(Panel):
    """One row for each latency that the engine exports as a histogram; of several servers a row for each server."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if frame.fleet is not None:
            return [[("Servers ", "title"), ("what hurts first", "muted")]]
        page = frame.engine_page(_trend_cells(self.size.width))
        window: TextRow = [(f"p50 / p90 over {page.window:.0f} s", "muted")]
        return [[("Latency ", "title"), ("by the engine's histograms", "")], window]

    def subtitle(self, frame: Frame) -> TextRow:
        page = frame.engine_page(_trend_cells(self.size.width))
        if frame.fleet is not None:
            return []
        return [(f"⚠ sample {formats.seconds(page.age)} old", "warn")] if page.outdated else []

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        if frame.fleet is not None:
            return fleet_rows(frame.fleet, width, height=height, selected=frame.selected)[:height]
        page = frame.engine_page(_trend_cells(width))
        rows = latency_rows(page, width)
        if not rows:
            reason = page.reason or f"not exported by {frame.engine_title}"
            return placard(sanitize_line(reason), width=width, height=height)
        return rows[:height]


def latency_rows(page: EnginePage, width: int) -> list[TextRow]:
    """Return name, p50 / p90 and trend of each latency; a value that is not known now is a dash."""
    lines = {line.spec.name: line for group in page.groups for line in group.lines}
    return [fitted(_row(lines[name], short, width), width) for name, short in SHOWN.items() if name in lines]


def _row(line: MetricLine, name: str, width: int) -> TextRow:
    known = not math.isnan(line.value)
    text = value_text(line.value, line.spec.unit, p90=line.p90, at_most=line.at_most, bucket=line.bucket)
    return [
        (f"{name:<{_NAME}}", ""),
        (f"{text if known else formats.UNKNOWN:>{_VALUE}} ", "strong" if known else "muted"),
        (trend_text(line.trend, _trend_cells(width)), "sky"),
    ]


def _trend_cells(width: int) -> int:
    return max(width - _NAME - _VALUE - 1, 1)
