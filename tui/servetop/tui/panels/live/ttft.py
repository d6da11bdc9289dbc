"""The TTFT breakdown: client queue, network, engine queue, prefill."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from servetop.analysis.ttft_breakdown import TtftBreakdown, without_unknown_wait
from servetop.core.text import formats
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined, placard
from servetop.tui.panels.panel import Panel
from servetop.tui.state.availability import staleness, why_missing
from servetop.tui.state.frame import Frame

_PARTS = (
    ("client queue", "client", "▓", "rose"),
    ("network", "net", "░", "sky"),
    ("engine queue", "queue", "█", "orange"),
    ("prefill", "prefill", "▒", "green"),
    ("unexplained", "rest", "╱", "muted"),
)
"""Name, short name, texture and style of each part, in the order in which a request passes them."""
_ENGINE = ("queue, prefill", "engine", "█", "orange")
"""Queue and prefill where they cannot be separated."""
_NOT_YET = ("not known yet", "unknown", "╱", "muted")
"""The rest while requests wait for their first token: the engine tells their times when they end."""
_ONE = 0.5
"""Mean number of waiting requests from which the panel shows it; it is rounded, and so at least 1."""
_WIDE, _WIDEST = 36, 48
"""Cells from which the note at the bottom edge has room for long words, and for all of them."""
_FIGURE = 8
"""Cells of a part's time."""


class TtftPanel(Panel):
    """The mean TTFT of the window, by part."""

    shows_cursor = True

    def title(self, frame: Frame) -> Sequence[TextRow]:
        parts = frame.stats.ttft
        return [
            [("Where TTFT goes ", "title"), (formats.seconds(parts.total), "strong")],
            [(f"mean of {formats.count(parts.requests)}, from due", "muted")],
        ]

    def subtitle(self, frame: Frame) -> TextRow:
        estimated = not math.isnan(frame.stats.ttft.queue_from)
        return [(ttft_note(frame, self.size.width), "warn" if frame.engine and not estimated else "muted")]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        if not frame.stats.ttft.requests:
            waiting = waiting_text(frame.stats.ttft)
            text = f"no first token in the window{': ' if waiting else ''}{waiting}"
            return placard(text, width=width, height=height)
        return draw_ttft(known_parts(frame), width, height)


def known_parts(frame: Frame) -> TtftBreakdown:
    """Return the parts that the run's recording can tell."""
    return without_unknown_wait(frame.stats.ttft, imported=frame.header.imported is not None)


def ttft_note(frame: Frame, width: int) -> str:
    """Return why a part is unknown, what the queue's is estimated from, or the age of the sample; else empty."""
    parts = frame.stats.ttft
    missing = why_missing(frame, "queue_seconds_total", "prefill_seconds_total")
    if missing and math.isnan(parts.engine_queue) and math.isnan(parts.prefill):
        return f"queue, prefill: {missing}"
    if not parts.is_split:
        return "▲ queue and prefill not separated"
    if parts.queue_from >= _ONE:
        estimated = f"queue {'estimated' if width >= _WIDE else 'est.'} from {formats.count(parts.queue_from)} waiting"
        return f"{estimated} on average" if width >= _WIDEST else estimated
    return staleness(frame)


def waiting_text(parts: TtftBreakdown) -> str:
    """Return the requests that wait for their first token, with their mean time so far; empty if there are none."""
    if not parts.has_waiting:
        return ""
    if parts.pending == 1:
        return f"1 request without a first token, {formats.seconds(parts.pending_age)} so far"
    return f"{formats.count(parts.pending)} requests without a first token, {formats.seconds(parts.pending_age)} so far"


def draw_ttft(parts: TtftBreakdown, width: int, height: int) -> list[TextRow]:
    """A stacked bar, each part's time below it (`–` if unknown), and who still waits; short names in few rows."""
    engine = _PARTS[2:4] if parts.is_split else (_ENGINE,)
    named = (*_PARTS[:2], *engine, _NOT_YET if parts.has_waiting else _PARTS[4])
    entries = list(zip(named, (*parts.parts, parts.unexplained), strict=True))
    legend = _legend(entries, width, name=0)
    if len(legend) > height - 1:
        legend = _legend(entries, width, name=1)
    if len(legend) > height - 1:  # not all of it fits: the engine's parts first
        legend = _legend([*entries[2:-1], *entries[:2], entries[-1]], width, name=1)
    if not parts.has_waiting:
        return [_bar(entries, width), *legend][:height]
    if len(legend) < height - 1:
        return [_bar(entries, width), *legend, fitted([(waiting_text(parts), "muted")], width)]
    brief: TextRow = [(f"{formats.count(parts.pending)} without token {formats.seconds(parts.pending_age)}", "muted")]
    return [_bar(entries, width), *legend[:-1], joined([legend[-1], brief], width=width, gap=" ")][:height]


_Part = tuple[tuple[str, str, str, str], float]


def _legend(parts: Sequence[_Part], width: int, *, name: int) -> list[TextRow]:
    named, swatch = max(len(part[name]) for part, _ in parts), 2 - name
    columns = min(max((width + 1) // (swatch + named + _FIGURE + 2), 1), len(parts))
    entries: list[list[Run]] = [
        [
            (part[2] * swatch, part[3]),
            (f" {part[name]:<{named}}", "muted"),
            (f"{formats.seconds(value):>{_FIGURE}}", "strong"),
        ]
        for part, value in parts
    ]
    lines = [entries[start : start + columns] for start in range(0, len(entries), columns)]
    return [joined(line, width=width, gap=" ") for line in lines]


def _bar(parts: Sequence[_Part], width: int) -> TextRow:
    """Each part as long as its share of the positive parts."""
    lengths = [0.0 if math.isnan(value) else max(value, 0.0) for _, value in parts]
    whole = sum(lengths) or 1.0
    edges = [round(edge / whole * width) for edge in accumulate(lengths, initial=0.0)]
    return [
        (part[2] * (high - low), part[3])
        for (part, _), (low, high) in zip(parts, pairwise(edges), strict=True)
        if high > low
    ]
