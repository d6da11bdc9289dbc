"""The requests panel: requests around a time as a table with their phases."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.events import RequestRecord
from servetop.core.interfaces.request_in_flight import MOST_IN_FLIGHT
from servetop.core.text import formats
from servetop.tui.drawing.cursor import Cursor
from servetop.tui.drawing.scale import steady_limit
from servetop.tui.drawing.text_runs import TextRow, placard
from servetop.tui.panels.detail.request_table import header, phase_legend, request_row, why_empty
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import MOST_REQUESTS, Frame
from servetop.tui.state.live_requests import live_rows
from servetop.tui.state.request_phases import PREEMPTED, ended_at
from servetop.tui.state.request_rows import COLUMNS, RequestRow, RowCache, has_failed, ordered, pointed_at

_SHORTEST = 2.0
"""Seconds that are read, at least."""
_SHORTEST_AXIS = 0.5
"""Seconds of the time axis, at least."""
_REDRAW = 0.5
"""Seconds of run time."""
_STEPS = 8
"""The time axis moves in steps of this fraction of its length, so that bars keep still in between."""


def axis_length(rows: Sequence[RequestRow], at: float, previous: float) -> float:
    """Seconds of a time axis that `time_axis` lets contain the rows up to `at`, given the last length; 0 for none."""
    seconds = max(min(ended_at(row.record), at) for row in rows) - min(row.due for row in rows)
    return steady_limit(previous, max(seconds * _STEPS / (_STEPS - 1), _SHORTEST_AXIS))


def time_axis(at: float, length: float) -> tuple[float, float]:
    """Return the ends of a time axis of `length` seconds that contains `at`; shorter near the start of the run."""
    step = length / _STEPS
    end = math.ceil(at / step - 1e-9) * step or step
    return max(end - length, 0.0), end


class RequestsPanel(Panel):
    """One row per request; only visible rows are drawn, and only the last few hundred requests are read."""

    order, descending, failed_only = COLUMNS[0], True, False
    selected: int | None = None
    """The id of the request that Enter opens."""
    rows: Sequence[RequestRow] = ()
    """All rows, in order."""
    _recorded = 0
    """Those with a record; the others have not ended."""
    _top = 0
    _seconds = 0.0
    """Of the run, in which all rows are."""
    _length = 0.0
    """Seconds of the time axis, which contains the rows that are drawn."""
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
        last = "last " if self._recorded >= MOST_REQUESTS else ""
        kind = f"{'failed ' if self.failed_only else ''}in {formats.seconds(self._seconds)}"
        parts: list[TextRow] = [[("Requests ", "title"), (f"{last}{self._recorded}", "strong"), (f" {kind}", "")]]
        parts.append([("in flight ", ""), (formats.count(load.in_flight), "strong")])
        preempted = sum(row.preempted for row in self.rows)
        parts += [[(PREEMPTED.glyph, PREEMPTED.style), (f" {preempted}", "strong"), (" preempted", "")]] * (
            preempted > 0
        )
        if self.failed_only or load.in_flight <= under_way:
            return parts
        if not frame.live:
            which = f"{load.in_flight - under_way} of them " if under_way else ""
            parts.append([(f"{which}not shown: they end later, or exceed the limit", "muted")])
        elif under_way >= MOST_IN_FLIGHT:
            parts.append([(f"the last {under_way} of them are listed", "muted")])
        return parts

    def subtitle(self, frame: Frame) -> TextRow:  # noqa: ARG002
        return phase_legend(self.size.width - 6)

    def peak(self, frame: Frame) -> float:
        """Return the seconds to read before rounding: one slow request, and those in the rows next to it."""
        tail = frame.stats.latencies["e2el"].p90 if frame.stats.latencies else math.nan
        tail = _SHORTEST if math.isnan(tail) else max(tail * 1.25, _SHORTEST)
        return tail + min(self.size.height / max(frame.stats.rates.sent, 1e-3), 2 * tail)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        at = frame.stats.at
        records, self._seconds = self._read(frame)
        rows = self._known.rows(records, at, preemptions=frame.preemptions)
        self._recorded = len(rows)
        if not self.failed_only:
            ended = {record.id for record in records}
            rows += live_rows(frame.in_flight(), at, ended=ended, preemptions=frame.preemptions)
        self.rows = ordered(rows, self.order, descending=self.descending)
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
        self._length = axis_length(shown, at, self._length)
        axis = time_axis(max(min(ended_at(row.record), at) for row in shown), self._length)
        head = header(width, axis, order=self.order, descending=self.descending)
        return [head, *(request_row(row, width, axis, chosen=row.id == self.selected) for row in shown)]

    def _read(self, frame: Frame) -> tuple[Sequence[RequestRecord], float]:
        """The requests around the frame's time, else the last ones before it, and the seconds in which they are."""
        at, (start, end) = frame.stats.at, time_axis(frame.stats.at, self.limit)
        records = self._wanted(frame.requests(start, at), at)
        if records:
            return records, end - start
        earlier = self._wanted(frame.requests(0.0, at), at)
        end = max(map(ended_at, earlier), default=at)
        records = [each for each in earlier if self.failed_only or ended_at(each) > end - self.limit]
        return records, end - min((each.due for each in records), default=start)

    def _wanted(self, records: Sequence[RequestRecord], at: float) -> Sequence[RequestRecord]:
        return [each for each in records if has_failed(each, at) or not self.failed_only]

    def choose(self, rows: int) -> None:
        """Move the selection by rows; the first time, select the first row."""
        positions = [number for number, row in enumerate(self.rows) if row.id == self.selected]
        position = min(max(positions[0] + rows, 0), len(self.rows) - 1) if positions else 0
        self.selected = self.rows[position].id if self.rows else None
        self.show_again()

    def chosen(self) -> RequestRecord | None:
        """Return the selected request, else the first that has ended; None if there is no such row."""
        if self.selected is None:
            return next((row.record for row in self.rows if row.record.done_at != math.inf), None)
        return next((row.record for row in self.rows if row.id == self.selected), None)
