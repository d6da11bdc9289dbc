"""The requests panel: requests around a time as a table with their phases."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.events import RequestRecord
from servetop.tui.drawing import formats
from servetop.tui.drawing.cursor import Cursor
from servetop.tui.drawing.text_runs import TextRow, placard
from servetop.tui.panels.detail.request_table import header, phase_legend, request_row, why_empty
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import MOST_REQUESTS, Frame
from servetop.tui.state.request_phases import PREEMPTED, ended_at
from servetop.tui.state.request_rows import COLUMNS, RequestRow, RowCache, ordered, pointed_at

_SHORTEST = 2.0
"""Seconds of the time axis, at least."""
_REDRAW = 0.5
"""Seconds of run time."""
_STEPS = 8
"""The time axis moves in steps of this fraction of its length, so that bars keep still in between."""


class RequestsPanel(Panel):
    """One row per request; only visible rows are drawn, and only the last few hundred requests are read."""

    order, descending, failed_only = COLUMNS[0], True, False
    selected: int | None = None
    """The id of the request that Enter opens."""
    rows: Sequence[RequestRow] = ()
    """All rows, in order."""
    _top = 0
    _pointed: Cursor | None = None
    _shown_at = math.nan

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._known = RowCache()

    def watch_frame(self, frame: Frame | None) -> None:
        """While time passes, redraw twice a second: a new request moves all rows, and over ssh every row counts."""
        if frame is not None:
            at, playhead = frame.stats.at, frame.view.playhead
            moves = playhead.following or playhead.playing
            if moves and self._shown_at <= at < self._shown_at + _REDRAW and self._drawn_for == self.size:
                return
            self._shown_at = at
        super().watch_frame(frame)

    def show_again(self) -> None:
        """Redraw at once, after a change of order or selection."""
        self._shown_at = math.nan
        self.watch_frame(self.frame)

    def title(self, frame: Frame) -> Sequence[TextRow]:
        at, load = frame.stats.at, frame.stats.load
        under_way = sum(ended_at(row.record) > at for row in self.rows)
        last = "last " if len(self.rows) >= MOST_REQUESTS else ""
        kind = f"{'failed ' if self.failed_only else ''}in {formats.seconds(self.limit)}"
        parts: list[TextRow] = [[("Requests ", "title"), (f"{last}{len(self.rows)}", "strong"), (f" {kind}", "")]]
        parts.append([("in flight ", ""), (formats.count(load.in_flight), "strong")])
        preempted = sum(row.preempted for row in self.rows)
        parts += [[(PREEMPTED.glyph, PREEMPTED.style), (f" {preempted}", "strong"), (" preempted", "")]] * (
            preempted > 0
        )
        if load.in_flight > under_way and not self.failed_only:
            missing = load.in_flight - under_way
            which = f"{missing} of them " if under_way else ""
            why = "listed when they end" if frame.live else "not shown: they end later, or exceed the limit"
            parts.append([(f"{which}{why}", "muted")])
        return parts

    def subtitle(self, frame: Frame) -> TextRow:  # noqa: ARG002
        return phase_legend(self.size.width - 6)

    def peak(self, frame: Frame) -> float:
        """The length of the time axis before rounding: one slow request, and those in the rows next to it."""
        tail = frame.stats.latencies["e2el"].p90 if frame.stats.latencies else math.nan
        tail = _SHORTEST if math.isnan(tail) else max(tail * 1.25, _SHORTEST)
        return tail + min(self.size.height / max(frame.stats.rates.sent, 1e-3), 2 * tail)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        at = frame.stats.at
        step = self.limit / _STEPS
        end = math.ceil(at / step - 1e-9) * step or step
        axis = (end - self.limit, end)
        rows = self._known.rows(frame.requests(axis[0], at), at, preemptions=frame.preemptions)
        matching = (row for row in rows if row.failed or not self.failed_only)
        self.rows = ordered(matching, self.order, descending=self.descending)
        if frame.view.cursor != self._pointed:
            self._pointed = frame.view.cursor
            self.selected = pointed_at(self.rows, frame.view, window=frame.window, otherwise=self.selected)
        position = next((number for number, row in enumerate(self.rows) if row.id == self.selected), 0)
        room = max(height - 1, 1)
        self._top = max(0, min(max(self._top, position - room + 1), position, len(self.rows) - 1))
        shown = self.rows[self._top : self._top + room]
        if not shown:
            reason = why_empty(frame.stats.load.in_flight, failed_only=self.failed_only)
            return placard(reason, width=width, height=height)
        head = header(width, axis, order=self.order, descending=self.descending)
        return [head, *(request_row(row, width, axis, chosen=row.id == self.selected) for row in shown)]

    def choose(self, rows: int) -> None:
        """Move the selection by rows; the first time, select the first row."""
        positions = [number for number, row in enumerate(self.rows) if row.id == self.selected]
        position = min(max(positions[0] + rows, 0), len(self.rows) - 1) if positions else 0
        self.selected = self.rows[position].id if self.rows else None
        self.show_again()

    def chosen(self) -> RequestRecord | None:
        """The selected request, else the first; None if there are no rows."""
        first = self.rows[:1]
        return next(
            (row.record for row in (*self.rows, *first) if row.id == self.selected or self.selected is None), None
        )
