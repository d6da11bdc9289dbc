"""The table of several watched servers: one row each, what hurts first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.analysis.fleet.slower_servers import SLOWER
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, shortened
from servetop.tui.state.fleet_state import FleetFrame

_LONGEST_NAME = 24
_STATE = 22
_COLUMNS = ("run", "wait", "KV", "preempt", "tok/s", "TTFT p90")
_WIDTHS = {name: max(len(name) + 1, 8) for name in _COLUMNS}
_NARROW_COLUMNS = tuple(name for name in _COLUMNS if name != "preempt")
_CALM = (
    ReplicaClass.DIFFERS, ReplicaClass.SERVING, ReplicaClass.IDLE, ReplicaClass.UNKNOWN, ReplicaClass.REMOVED,
)  # fmt: skip


def listed_rows(fleet: FleetFrame) -> list[ReplicaRow]:
    """Return the servers that the table shows, in its order."""
    return [row for row in fleet.rows if row.kind is not ReplicaClass.REMOVED]


def fleet_rows(
    fleet: FleetFrame, width: int, *, height: int | None = None, selected: ReplicaRow | None = None
) -> list[TextRow]:
    """Return the sums, the skew, a heading, and a row for each server that is listed, the selected one marked.

    If `height` has no room for all, the skew and then the sums give way, then rows, but not the selected one; then
    there is a line with the number of those that are not shown. A narrow table has no column of preemptions.
    """
    rows = listed_rows(fleet)
    wide = min(_LONGEST_NAME, max([len("server"), *(len(row.name) for row in rows)]))
    columns = _COLUMNS if 4 + wide + _STATE + sum(_WIDTHS.values()) <= width else _NARROW_COLUMNS
    heading = f"  {'server':<{wide}}  {'state':<{_STATE}}" + "".join(f"{name:>{_WIDTHS[name]}}" for name in columns)
    sums = [fitted([(text, "")], width) for text in (fleet.totals, fleet.skew) if text]
    if height is not None:
        sums = sums[: max(height - 1 - len(rows), 0)]
    shown, hidden = _visible(rows, None if height is None else height - len(sums) - 1, selected)
    number = None if selected is None else selected.number
    table = [fitted(_row(row, wide, columns, marked=row.number == number), width) for row in shown]
    more = [fitted([(f"  {hidden} more", "muted")], width)] if hidden else []
    return [*sums, fitted([(heading, "muted")], width), *table, *more]


def _visible(
    rows: Sequence[ReplicaRow], room: int | None, selected: ReplicaRow | None
) -> tuple[Sequence[ReplicaRow], int]:
    """Return the rows for which there is room, with the selected one, and the number of all others."""
    if room is None or len(rows) <= room:
        return rows, 0
    count = max(room - 1, 1)
    place = next((place for place, row in enumerate(rows) if selected and row.number == selected.number), 0)
    first = min(max(place - count + 1, 0), len(rows) - count)
    return rows[first : first + count], len(rows) - count


def _row(row: ReplicaRow, wide: int, columns: Sequence[str], *, marked: bool) -> TextRow:
    name = f"{shortened(sanitize_line(row.name), wide):<{wide}}  "
    since = "" if math.isnan(row.since) else f" since {formats.clock(row.since)}"
    if row.kind is ReplicaClass.RESTARTED and row.restarted_at is not None:
        since = f", restarted {formats.clock(row.restarted_at)}"
    named = "slower" if row.kind is ReplicaClass.SLOW else row.state
    state = f"{shortened(named + since, _STATE):<{_STATE}}"
    slower = f"  {SLOWER}: {row.slower}" if row.slower else ""
    differs = f"  ≠ {sanitize_line(row.differs)}" if row.differs else ""
    figures = "".join(f"{_figures(row)[name]:>{_WIDTHS[name]}}" for name in columns)
    pointer: Run = ("▸ ", "cursor") if marked else ("  ", "")
    return [
        pointer,
        (name, "strong"),
        (state, "" if row.kind in _CALM else "warn"),
        (figures, ""),
        (slower, "warn"),
        (differs, "warn"),
    ]


def _figures(row: ReplicaRow) -> Mapping[str, str]:
    """Return the texts of the columns by their names."""
    return {
        "run": formats.count(row.running),
        "wait": formats.count(row.waiting),
        "KV": formats.percent(row.kv),
        "preempt": formats.UNKNOWN if math.isnan(row.preemptions) else f"{row.preemptions:.1f}/s",
        "tok/s": formats.count(row.output),
        "TTFT p90": formats.seconds(row.ttft_p90),
    }
