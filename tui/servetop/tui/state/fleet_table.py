"""The table of several watched servers: one row each, what hurts first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import TextRow, fitted, shortened
from servetop.tui.state.fleet_state import FleetFrame

_LONGEST_NAME = 24
_STATE = 22
_WIDTH = 9
_COLUMNS = ("run", "wait", "KV", "preempt", "tok/s", "TTFT p90")
_CALM = (ReplicaClass.SERVING, ReplicaClass.IDLE, ReplicaClass.UNKNOWN, ReplicaClass.REMOVED)


def fleet_rows(fleet: FleetFrame, width: int) -> list[TextRow]:
    """Return the sums, the skew, a heading, and a row for each server that is listed."""
    rows = [row for row in fleet.rows if row.kind is not ReplicaClass.REMOVED]
    wide = min(_LONGEST_NAME, max((len(row.name) for row in rows), default=0))
    heading = f"{'server':<{wide}}  {'state':<{_STATE}}" + "".join(f"{name:>{_WIDTH}}" for name in _COLUMNS)
    table = [fitted(_row(row, wide), width) for row in rows]
    sums = [fitted([(text, "")], width) for text in (fleet.totals, fleet.skew) if text]
    return [*sums, fitted([(heading, "muted")], width), *table]


def _row(row: ReplicaRow, wide: int) -> TextRow:
    name = f"{shortened(sanitize_line(row.name), wide):<{wide}}  "
    since = "" if math.isnan(row.since) else f" since {formats.clock(row.since)}"
    if row.kind is ReplicaClass.RESTARTED and row.restarted_at is not None:
        since = f", restarted {formats.clock(row.restarted_at)}"
    state = f"{shortened(row.state + since, _STATE):<{_STATE}}"
    differs = f"  ≠ {sanitize_line(row.differs)}" if row.differs else ""
    figures = "".join(f"{figure:>{_WIDTH}}" for figure in _figures(row))
    return [(name, "strong"), (state, "" if row.kind in _CALM else "warn"), (figures, ""), (differs, "warn")]


def _figures(row: ReplicaRow) -> Sequence[str]:
    return (
        formats.count(row.running),
        formats.count(row.waiting),
        formats.percent(row.kv),
        formats.UNKNOWN if math.isnan(row.preemptions) else f"{row.preemptions:.1f}/s",
        formats.count(row.output),
        formats.seconds(row.ttft_p90),
    )
