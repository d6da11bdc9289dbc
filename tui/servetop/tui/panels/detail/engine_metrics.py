"""The panel of the engine page: one row for each metric that no other panel shows, under headings."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from textual.reactive import reactive

from servetop.core.interfaces.run_source import NOT_IMPORTED
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.quantities import value_text
from servetop.tui.drawing.text_runs import TextRow, fitted, placard, shortened
from servetop.tui.drawing.trend import trend_text
from servetop.tui.panels.panel import Panel
from servetop.tui.state.availability import engine_name
from servetop.tui.state.engine_page import Activity, EnginePage, MetricGroup, MetricLine
from servetop.tui.state.frame import Frame

_VALUE = 18
"""Cells of a value, as in `≤10.0 ms / 12.3 ms`."""
_NARROW, _WIDE = 100, 150
"""Widths of the panel from which the engine's names are shown, and from which they have their namespace."""
_LONGEST_TREND = 64
_SOURCE = 50
"""Cells of the longest name, `vllm:spec_decode_num_accepted_tokens_per_pos_total`."""


class Columns(NamedTuple):
    """Widths in cells of the columns that differ with the panel's width."""

    name: int
    trend: int
    source: int
    """0: not shown."""
    gap: int
    """Cells between two columns."""


def columns_for(width: int) -> Columns:
    """In a narrow panel the trend takes the rest; in others the engine's own names have priority."""
    if width < _NARROW:
        return Columns(34, max(width - 34 - _VALUE - 2, 0), 0, 1)
    name, source, gap = (38, _SOURCE - len("vllm:"), 1) if width < _WIDE else (40, _SOURCE, 2)
    trend = min(max(width - name - _VALUE - source - 3 * gap, 12), _LONGEST_TREND)
    return Columns(name, trend, width - name - _VALUE - trend - 3 * gap, gap)


class EngineMetricsPanel(Panel):
    """All metrics at the playhead or cursor, starting at row `top`."""

    shows_cursor = True
    top: reactive[int] = reactive(0)

    def title(self, frame: Frame) -> Sequence[TextRow]:
        page = frame.engine_page(columns_for(self.size.width).trend)
        parts: list[TextRow] = [
            [("Engine ", "title"), *engine_name(frame.engine, otherwise=frame.engine_title), *_server(frame)],
            [(f"last {page.window:.0f} s, pairs are p50 / p90", "muted")],
        ]
        if page.groups:
            step = formats.clock(page.step) if page.step >= 60 else f"{page.step:g} s"
            parts.append([(f"one bar {step}", "muted")])
        return parts

    def subtitle(self, frame: Frame) -> TextRow:
        page = frame.engine_page(columns_for(self.size.width).trend)
        return [(f"⚠ sample {formats.seconds(page.age)} old", "warn")] if page.outdated else []

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
            rows = len(draw_page(page, missing_text(self.frame), self.size.width))
            self.top = min(max(self.top + lines, 0), max(0, rows - self.size.height))
            self.watch_frame(self.frame)


def _server(frame: Frame) -> TextRow:
    """Return which of several watched servers has these metrics."""
    return [] if frame.selected is None else [(" of ", "muted"), (sanitize_line(frame.selected.name), "key")]


def missing_text(frame: Frame) -> str:
    """Why metrics are missing: `not exported by vLLM 0.32`; a Prometheus server may lack more than the engine does."""
    if frame.header.imported is not None:
        return NOT_IMPORTED
    if frame.header.config.engine.metrics_url is not None:
        return "not read from --metrics-url"
    version = (frame.engine and frame.engine.version) or ""
    return sanitize_line(f"not exported by {frame.engine_title} {version}".rstrip())


def draw_page(page: EnginePage, missing: str, width: int) -> list[TextRow]:
    """The rows of all groups, those with active metrics first, and what the engine does not export as one paragraph."""
    active = [group for group in page.groups if any(line.activity is Activity.ACTIVE for line in group.lines)]
    quiet = [group for group in page.groups if group.lines and group not in active]
    rows = [row for group in active for row in [*_group_rows(group, width), []]]
    rows += [row for group in quiet for row in _quiet_rows(group, width, prefix=f"{group.title}  ")]
    absent = [text for group in page.groups if (text := _absent(group))]
    rows += _paragraph(page.note, width)
    return [*rows, *_paragraph(f"{missing}: {'; '.join(absent)}" if absent else "", width)]


def _group_rows(group: MetricGroup, width: int) -> list[TextRow]:
    columns = columns_for(width)
    lines = [line for line in group.lines if line.activity is Activity.ACTIVE]
    rows: list[TextRow] = [fitted([(sanitize_line(group.title), "title")], width)]
    return [*rows, *(fitted(metric_row(line, columns), width) for line in lines), *_quiet_rows(group, width)]


def _quiet_rows(group: MetricGroup, width: int, *, prefix: str = "  ") -> list[TextRow]:
    """Return what is 0 throughout and what has no values, by name instead of a row each."""
    parts = []
    for activity in (Activity.IDLE, Activity.UNMEASURED):
        labels: dict[str, list[str]] = {}
        for line in group.lines:
            if line.activity is activity:
                labels.setdefault(line.spec.name, []).append(line.label)
        if labels:
            names = "; ".join(f"{name} {', '.join(values)}".strip() for name, values in labels.items())
            parts.append(f"{activity.value}: {names}")
    return _paragraph(prefix + " · ".join(parts) if parts else "", width)


def _absent(group: MetricGroup) -> str:
    """Return the group, or those of its metrics, that the engine does not export; empty if it exports them all."""
    if not group.lines:
        return group.title if group.missing else f"{group.title} (a single rank)"
    return f"{group.title} ({', '.join(group.missing)})" if group.missing else ""


def _paragraph(text: str, width: int) -> list[TextRow]:
    """Quiet text, wrapped between words."""
    lines = textwrap.wrap(sanitize_line(text), max(width, 8), subsequent_indent="    ", drop_whitespace=True)
    return [fitted([(line, "faint")], width) for line in lines]


def metric_row(line: MetricLine, columns: Columns) -> TextRow:
    """Name, value, trend, and the engine's own name of the series."""
    name = sanitize_line(f"{line.spec.name} {line.label}".strip())
    idle = not line.value > 0
    source = sanitize_line(line.source)
    if columns.source < _SOURCE:
        source = source.partition(":")[2] or source
    value = value_text(line.value, line.spec.unit, p90=line.p90, at_most=line.at_most, bucket=line.bucket)
    gap = " " * columns.gap
    return [
        (f"  {shortened(name, columns.name - 2):<{columns.name - 2}}{gap}", "muted" if idle else ""),
        (f"{value:>{_VALUE}}{gap}", "muted" if idle else "strong"),
        (trend_text(line.trend, columns.trend), "sky"),
        (f"{gap}{shortened(source, columns.source)}" if columns.source else "", "faint"),
    ]
