"""The table of requests: values at the left, phases on a time axis at the right."""

from __future__ import annotations

import math

from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined
from servetop.tui.state.request_phases import DECODE, ENGINE_QUEUE, PREEMPTED, PREFILL, QUEUED, STALL, TO_FIRST_TOKEN
from servetop.tui.state.request_rows import RequestRow, bar

_FIELDS = (
    ("id", "id", 8),
    ("due", "due", 8),
    ("ttft", "TTFT", 8),
    ("e2el", "E2EL", 8),
    ("status", "status", 11),
    ("stalled", "stall", 10),
    ("itl_max", "max ITL", 8),
    ("itl", "ITL", 8),
    ("prompt_tokens", "in", 7),
    ("output_tokens", "out", 6),
)
"""Column, heading and cells, most important first."""
_LEAST_BAR = 24
_LEGEND = (QUEUED, TO_FIRST_TOKEN, DECODE, STALL, PREEMPTED, ENGINE_QUEUE, PREFILL)
"""Phases that the server need not report first."""


def _fields(width: int) -> tuple[tuple[str, str, int], ...]:
    """Return the columns that leave room for the bars."""
    kept = 3
    while kept < len(_FIELDS) and sum(each[2] for each in _FIELDS[: kept + 1]) + 2 + _LEAST_BAR <= width:
        kept += 1
    return _FIELDS[:kept]


def header(width: int, axis: tuple[float, float], *, order: str, descending: bool) -> TextRow:
    """Headings with an arrow at the sort column, and the ends of the time axis."""
    arrow = "▼" if descending else "▲"
    names: list[Run] = [("  ", "")]
    for column, name, cells in _fields(width):
        text = f"{arrow}{name}" if column == order else name
        names.append(
            (
                f" {text:<{cells - 1}}" if column == "status" else f"{text:>{cells}}",
                "strong" if column == order else "muted",
            )
        )
    room = width - sum(len(text) for text, _ in names) - 1
    left, right = (f"{formats.clock_time(at)[3:]}.{int(at * 10) % 10}" for at in axis)
    gap = max(room - len(left) - len(right), 0)
    return fitted([*names, (" ", ""), (left, "faint"), (" " * gap, ""), (right, "faint")], width)


def phase_legend(width: int) -> TextRow:
    """Return the glyph and name of each phase, as many as fit."""
    return joined(
        ([(each.glyph * 2, each.style), (f" {each.name}", "muted")] for each in _LEGEND), width=width, gap="  "
    )


def request_row(row: RequestRow, width: int, axis: tuple[float, float], *, chosen: bool) -> TextRow:
    """Values at the left, bar at the right."""
    runs: list[Run] = [("▸ " if chosen else "  ", "key")]
    for column, _, cells in _fields(width):
        value = getattr(row, column)
        if column == "status":
            runs.append((f" {value:<{cells - 1}}", "bad" if row.failed else "muted"))
        elif column == "stalled":
            runs += _stalled(row, cells)
        elif column == "due":
            runs.append(
                (
                    f"{formats.clock_time(value)[3:]}.{int(value * 10 + 1e-6) % 10}".rjust(cells),
                    "strong" if chosen else "",
                )
            )
        else:
            whole = column in ("prompt_tokens", "output_tokens")
            text = str(value) if column == "id" else (formats.count(value) if whole else formats.seconds(value))
            runs.append((f"{text:>{cells}}", "strong" if chosen else ""))
    room = width - sum(len(text) for text, _ in runs) - 1
    return [*runs, (" ", ""), *bar(row.spans, axis, max(room, 1), failed=row.failed)]


def _stalled(row: RequestRow, cells: int) -> list[Run]:
    """Return the length of the stalls, marked if the engine preempted requests meanwhile; blank without any."""
    if math.isnan(row.stalled):
        return [(" " * cells, "")]
    phase = PREEMPTED if row.preempted else STALL
    text = formats.seconds(row.stalled)
    return [(f"{phase.glyph:>{cells - len(text) - 1}} ", phase.style), (text, "strong")]


def why_empty(in_flight: int, *, failed_only: bool) -> str:
    """Return the text of an empty table."""
    if failed_only:
        return "no failed requests up to this time"
    if in_flight:
        return f"{counted(in_flight, 'request')} in flight, none listed yet: they are reported once a second"
    return "no requests up to this time"
