"""The table of several watched servers: one row each, what hurts first."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.analysis.fleet.slower_servers import SLOWER
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, shortened
from servetop.tui.state.fleet_state import FleetFrame

_LONGEST_NAME = 24
_STATE = 22
_MARK = 8
"""Cells by which the state is wider, if there is room, where it has what differs."""
_ELSEWHERE = re.compile(r" \([^()]* elsewhere\)")
_COLUMNS = ("run", "wait", "KV", "preempt", "tok/s", "TTFT p90")
_WIDTHS = {name: max(len(name) + 1, 8) for name in _COLUMNS}
_LEFT_OUT = ("preempt", "tok/s", "wait", "TTFT p90", "run")
"""Columns in the order in which they give way where the table is narrow."""
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
    the last line has the number of hidden ones. A narrow table leaves out columns.
    """
    rows = listed_rows(fleet)
    wide = min(_LONGEST_NAME, max([len("server"), *(len(row.name) for row in rows)]))
    columns = _columns(width - 4 - wide - _STATE)
    room = max(width - 4 - wide - _STATE - sum(_WIDTHS[name] for name in columns), 0)
    inside = any(row.differs and len(_behind(row)) > room for row in rows)
    state_wide = _STATE + min(room, _MARK) if inside else _STATE
    heading = f"  {'server':<{wide}}  {'state':<{state_wide}}" + "".join(f"{name:>{_WIDTHS[name]}}" for name in columns)
    sums = [fitted([(text, "")], width) for text in (fleet.totals, fleet.skew) if text]
    if height is not None:
        sums = sums[: max(height - 1 - len(rows), 0)]
    shown, hidden = _visible(rows, None if height is None else height - len(sums) - 1, selected)
    number = None if selected is None else selected.number
    widths = wide, state_wide
    table = [fitted(_row(row, widths, columns, marked=row.number == number, inside=inside), width) for row in shown]
    more = [fitted([(f"  {hidden} more", "muted")], width)] if hidden else []
    return [*sums, fitted([(heading, "muted")], width), *table, *more]


def _columns(width: int) -> Sequence[str]:
    """Return the columns of figures for which there is room."""
    columns = list(_COLUMNS)
    for name in _LEFT_OUT:
        if sum(_WIDTHS[each] for each in columns) <= width:
            break
        columns.remove(name)
    return columns


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


def _row(row: ReplicaRow, widths: tuple[int, int], columns: Sequence[str], *, marked: bool, inside: bool) -> TextRow:
    """Return the cells of a server; what differs is behind its figures, or `inside` its state where that is cut."""
    wide, state_wide = widths
    name = f"{shortened(sanitize_line(row.name), wide):<{wide}}  "
    since = "" if math.isnan(row.since) else f" since {formats.clock(row.since)}"
    if row.kind is ReplicaClass.RESTARTED and row.restarted_at is not None:
        since = f", restarted {formats.clock(row.restarted_at)}"
    named = "slower" if row.kind is ReplicaClass.SLOW else row.state
    own = inside and row.differs != ""
    state = shortened(named + since, state_wide - 2 if own else state_wide)
    mark = shortened(f" ≠ {_ELSEWHERE.sub('', sanitize_line(row.differs))}", state_wide - len(state)) if own else ""
    figures = "".join(f"{_figures(row)[name]:>{_WIDTHS[name]}}" for name in columns)
    pointer: Run = ("▸ ", "cursor") if marked else ("  ", "")
    return [
        pointer,
        (name, "strong"),
        (state, "" if row.kind in _CALM else "warn"),
        (f"{mark:<{state_wide - len(state)}}", "warn"),
        (figures, ""),
        (_slower(row) if own else _behind(row), "warn"),
    ]


def _slower(row: ReplicaRow) -> str:
    return f"  {SLOWER}: {row.slower}" if row.slower else ""


def _behind(row: ReplicaRow) -> str:
    """Return what is said of a server behind its figures."""
    return _slower(row) + (f"  ≠ {sanitize_line(row.differs)}" if row.differs else "")


def _figures(row: ReplicaRow) -> Mapping[str, str]:
    """Return the texts of the columns by their names."""
    return {
        "run": formats.count(row.running),
        "wait": formats.count(row.waiting),
        "KV": formats.percent(row.kv),
        "preempt": formats.UNKNOWN if math.isnan(row.preemptions) else f"{row.preemptions:.1f}/s",
        "tok/s": formats.count(row.output),
        "TTFT p90": ("≤" if row.ttft_at_most else "") + formats.seconds(row.ttft_p90),
    }
