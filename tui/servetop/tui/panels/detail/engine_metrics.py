"""The panel of the engine page: one row for each metric that no other panel shows, under headings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.reactive import reactive

from servetop.analysis.engine_gauges import STALE_AFTER
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing import formats
from servetop.tui.drawing.quantities import value_text
from servetop.tui.drawing.text_runs import TextRow, fitted, placard, shortened
from servetop.tui.drawing.trend import trend_text
from servetop.tui.panels.panel import Panel
from servetop.tui.state.availability import engine_name
from servetop.tui.state.engine_page import WINDOW, EnginePage, MetricGroup, MetricLine
from servetop.tui.state.frame import Frame

_VALUE = 17
"""Cells of a value, as in `1.23 s / 12.3 min`."""
_NARROW, _WIDE = 100, 150
"""Widths of the panel from which the columns are wider."""
_WITH_NAMESPACE = 46
"""Cells from which the engine's names are shown with their namespace, such as `vllm:`."""
_SCRAPE_AGE = 1.0 + STALE_AFTER
"""Age in seconds of an outdated scrape; there is one per second."""


class Columns(NamedTuple):
    """Widths in cells of the columns that differ with the panel's width."""

    name: int
    trend: int
    source: int
    gap: int
    """Cells between two columns."""


def columns_for(width: int) -> Columns:
    """Names and trends grow with the width; the rest is for the engine's own names."""
    if width < _NARROW:
        name, trend, gap = 26, 10, 1
    else:
        name, trend, gap = (34, 24, 2) if width < _WIDE else (40, 40, 2)
    return Columns(name, trend, max(width - name - _VALUE - trend - 3 * gap, 0), gap)


class EngineMetricsPanel(Panel):
    """All metrics at the playhead or cursor, starting at row `top`."""

    shows_cursor = True
    top: reactive[int] = reactive(0)

    def title(self, frame: Frame) -> Sequence[TextRow]:
        page = frame.engine_page(columns_for(self.size.width).trend)
        parts: list[TextRow] = [
            [("Engine ", "title"), *engine_name(frame.engine, otherwise=frame.engine_title)],
            [(f"last {WINDOW:.0f} s, pairs are p50 / p90", "muted")],
        ]
        if page.groups:
            step = formats.minutes(page.step) if page.step >= 60 else f"{page.step:g} s"
            parts.append([(f"one bar {step}", "muted")])
        return parts

    def subtitle(self, frame: Frame) -> TextRow:
        page = frame.engine_page(columns_for(self.size.width).trend)
        return [(f"⚠ sample {formats.seconds(page.age)} old", "warn")] if page.age > _SCRAPE_AGE else []

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        page = frame.engine_page(columns_for(width).trend)
        if not page.groups:
            return placard(sanitize_line(page.reason), width=width, height=height)
        rows = draw_page(page, missing_text(frame), width)
        top = min(self.top, max(len(rows) - height, 0))  # a page of an earlier time may be shorter
        return rows[top : top + height]

    def scroll(self, lines: int) -> None:
        """Scroll down (positive) or up by lines, within the page."""
        if self.frame is not None:
            page = self.frame.engine_page(columns_for(self.size.width).trend)
            rows = len(draw_page(page, "", self.size.width))
            self.top = min(max(self.top + lines, 0), max(0, rows - self.size.height))
            self.watch_frame(self.frame)


def missing_text(frame: Frame) -> str:
    """Why metrics are missing: `not exported by vLLM 0.32`; a Prometheus server may lack more than the engine does."""
    if frame.header.config.engine.metrics_url is not None:
        return "not read from --metrics-url"
    version = (frame.engine and frame.engine.version) or ""
    return sanitize_line(f"not exported by {frame.engine_title} {version}".rstrip())


def draw_page(page: EnginePage, missing: str, width: int) -> list[TextRow]:
    """The rows of all groups, those with values first; one without any series is a quiet row with `missing`."""
    rows: list[TextRow] = []
    for group in page.groups:
        if group.lines:
            rows += [*_group_rows(group, missing, width), []]
    empty = [group for group in page.groups if not group.lines]
    return [*rows, *(row for group in empty for row in _group_rows(group, missing, width))]


def _group_rows(group: MetricGroup, missing: str, width: int) -> list[TextRow]:
    if not group.lines:
        reason = missing if group.missing else "a single rank"
        return [fitted([(f"{group.title}  ", "muted"), (reason, "faint")], width)]
    rows: list[TextRow] = [fitted([(group.title, "title")], width)]
    rows += [fitted(metric_row(line, columns_for(width)), width) for line in group.lines]
    if group.missing:
        names = ", ".join(group.missing)
        rows.append(fitted([(f"  {' '.join(missing.split()[:2])}: {names}", "faint")], width))
    return rows


def metric_row(line: MetricLine, columns: Columns) -> TextRow:
    """Name, value, trend, and the engine's own name of the series."""
    name = sanitize_line(f"{line.spec.name} {line.label}".strip())
    idle = not line.value > 0
    source = sanitize_line(line.source)
    if columns.source < _WITH_NAMESPACE:
        source = source.partition(":")[2] or source
    value = value_text(line.value, line.spec.unit, p90=line.p90)
    gap = " " * columns.gap
    return [
        (f"  {shortened(name, columns.name - 2):<{columns.name - 2}}{gap}", "muted" if idle else ""),
        (f"{value:>{_VALUE}}{gap}", "muted" if idle else "strong"),
        (trend_text(line.trend, columns.trend) + gap, "sky"),
        (shortened(source, columns.source), "faint"),
    ]
