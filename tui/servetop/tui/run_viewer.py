"""The run on the screen: its source, what was read from it, and the view of it. Independent of Textual."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from servetop.core.clock import Clock
from servetop.core.errors import ServetopError
from servetop.core.events import RequestRecord
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.run_source import RunSource, RunUpdate
from servetop.core.tick import Tick
from servetop.tui.options import DashboardOptions
from servetop.tui.state.baseline import Baseline
from servetop.tui.state.baseline_clock import BaselineClock
from servetop.tui.state.baseline_run import BaselineRun
from servetop.tui.state.comparison_table import ComparisonTable
from servetop.tui.state.fleet_view import FleetView
from servetop.tui.state.frame import DEFAULT_SPAN, MOST_REQUESTS, Frame, View
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.run_state import CLOSED_TICKS, LIVE_TICKS, SERIES_BINS, RunState
from servetop.tui.state.scratch_file import ScratchFile

REDRAW_SECONDS = 0.25
REDUCED_MOTION_REDRAW_SECONDS = 1.0
"""Between two frames with reduced motion, unless a key requests one."""
MOST_TICKS = 4_000
"""Ticks per read: a recording of a day needs no more memory to open than one of an hour."""
_NO_BASELINE = "no baseline: servetop replay RUN --against BASELINE"
_READING_BASELINE = "the baseline is being read"
_MESSAGE_SECONDS = 5.0
_RECENT = 300.0
"""Seconds before a time from which the usual E2EL is taken."""
_TAIL_FACTOR = 3.0
"""Requests in flight at a time are read if they ended within this multiple of the 99th percentile of E2EL."""


class RunViewer:
    """Folds the source's updates into the run's state and moves the playhead; `frame` is what the screen shows."""

    source: RunSource
    run: RunState
    fleet_view: FleetView
    view: View
    path: Path | None

    def __init__(
        self, options: DashboardOptions, clock: Clock, *, redraw: Callable[[], None], call_later: Callable[..., object]
    ) -> None:
        """`redraw` is called when the view changes; `call_later` defers a call until the current frame is drawn."""
        self.options = options
        self.clock = clock
        self._redraw = redraw
        self._call_later = call_later
        self._message_until = 0.0
        self._first_name: str | None = None
        self._baseline: BaselineClock | None = None
        self.comparison = ComparisonTable(note=_NO_BASELINE if options.baseline is None else _READING_BASELINE)

    def open(self, source: RunSource, *, start_at: float | None = None, path: Path | None = None) -> None:
        """Read a run and show it: at `start_at` seconds, else at its live edge; a finished one whole, at its end.

        `path` is its file, from which it is compared.
        """
        self.source, self.path = source, path
        self._first_name = self._first_name or source.name
        self._drawn_live = source.is_live()
        keep = LIVE_TICKS if self._drawn_live else CLOSED_TICKS
        self.run = RunState(source.header, read=self._past_ticks, keep=keep, scratch=ScratchFile())
        self.fleet_view = FleetView(self.run)
        self.run.awaits_sweep = self.options.read_sweep is not None and path is not None
        update = RunUpdate(more=True)
        while update.more:
            update = source.poll(most_ticks=MOST_TICKS)
            self.run.fold(update)
        self.view = View(
            playhead=Playhead.opened(edge=self.run.edge, growing=self._drawn_live, start_at=start_at),
            span=DEFAULT_SPAN if self._drawn_live or start_at is not None else 0.0,
        )
        self._polled_at = self._drawn_at = self.clock.now()
        self._changed = False

    @property
    def is_search(self) -> bool:
        """Whether the run is a search for the largest load, or its load was handed to one."""
        return self.run.header.config.search is not None

    @property
    def search_chooses(self) -> bool:
        """Whether a search chooses the load now."""
        return self.is_search and not self.run.search.over

    @property
    def can_steer(self) -> bool:
        """The run is live and has a load, and the dashboard is not read-only."""
        return self.source.is_live() and not self.options.read_only and not self.is_watch

    @property
    def is_watch(self) -> bool:
        """Whether the server is watched under the load of other clients."""
        return self.run.header.config.watch is not None

    def frame(self) -> Frame:
        """Return the run as of the playhead."""
        self._drawn_at, self._changed = self.clock.now(), False
        self._drawn_view, self._drawn_live = self.view, self.source.is_live()
        frame = replace(
            self.fleet_view.at(self.view, live=self._drawn_live),
            requests=self._requests,
            in_flight=self._in_flight,
            read_only=self.options.read_only,
            run_name=self.source.name,
            against=self.options.baseline is not None,
            comparison=self.comparison,
            checks=None if self.run.sweep is None else self.run.sweep.checks,
        )
        return frame if self._baseline is None else replace(frame, baseline=self._baseline_at(frame))

    @property
    def baseline(self) -> BaselineRun | None:
        """The run that this one is compared with; None without one, and until it is read."""
        return None if self._baseline is None else self._baseline.baseline

    @property
    def run_names(self) -> tuple[str, str]:
        """Of the run on the screen and of the baseline."""
        file = self.source.name
        return (file, "") if self._baseline is None else self._baseline.names(self.run.header, file)

    def show_comparison(self, table: ComparisonTable) -> None:
        """Show the verdicts on all stages."""
        self.comparison = table
        self._redraw()

    def compare_with(self, baseline: BaselineRun) -> None:
        """Show a baseline beside the run, or its newer state."""
        self._baseline = BaselineClock(baseline)
        self._redraw()

    def _baseline_at(self, frame: Frame) -> Baseline | None:
        if self._baseline is None:
            return None
        return self._baseline.at(frame, self.run.stages, self.run.end, columns=SERIES_BINS)

    def advance(self) -> bool:
        """Read new updates and move the playhead by the elapsed time; whether a redraw is due."""
        now = self.clock.now()
        elapsed, self._polled_at = now - self._polled_at, now
        changed = self.read_updates() | self._read_unrecorded()
        before = self.view
        message = before.message if now < self._message_until else ""
        playhead = before.playhead.advanced(elapsed, edge=self.run.edge)
        self.view = replace(before, playhead=playhead, message=message)
        reduced = self.options.reduced_motion
        if (changed and playhead.following and not reduced) or message != before.message:
            return True
        interval = REDUCED_MOTION_REDRAW_SECONDS if reduced else REDRAW_SECONDS
        moved = self._drawn_view != self.view or self._drawn_live != self.source.is_live()
        self._changed |= changed
        return now - self._drawn_at >= interval and (self._changed or moved)

    def read_updates(self) -> bool:
        """Fold what the source has to add; whether there was anything. Errors become messages."""
        try:
            return self.run.fold(self.source.poll(most_ticks=MOST_TICKS))
        except ServetopError as error:
            self.show_message(str(error))
            return False

    def _read_unrecorded(self) -> bool:
        """Add notes of the first run that its recording may not contain, while that run is shown."""
        if self.options.unrecorded_notes is None or self.source.name != self._first_name:
            return False
        return self.run.run_notes.add_unrecorded(self.options.unrecorded_notes())

    def update_view(self, **changes: Any) -> None:
        """Change fields of the view, and redraw."""
        self.view = replace(self.view, **changes)
        self._redraw()

    def show_message(self, text: str) -> None:
        """Show one line at the bottom for five seconds."""
        self._message_until = self.clock.now() + _MESSAGE_SECONDS
        self.update_view(message=text)

    def _requests(self, start: float, until: float, *, most: int = MOST_REQUESTS) -> Sequence[RequestRecord]:
        """Requests from the source; those that ended long after `until` are omitted, so that a seek stays cheap."""
        history = self.run.history
        recent = history.first_from(until - _RECENT)
        tail = history.percentiles("e2el", start=recent, stop=history.up_to(until))[2]
        ended_by = until + _TAIL_FACTOR * (1.0 if math.isnan(tail) else tail)
        try:
            return self.source.requests(start, until, ended_by=ended_by, most=most)
        except ServetopError as error:
            self._call_later(self.show_message, str(error))
            return ()

    def _in_flight(self) -> Sequence[RequestInFlight]:
        try:
            return self.source.in_flight()
        except ServetopError as error:
            self._call_later(self.show_message, str(error))
            return ()

    def _past_ticks(self, first: int, last: int) -> Sequence[Tick]:
        """Ticks `first` to `last` that are no longer in memory; empty if they cannot be read."""
        try:
            return self.source.past_ticks(first, last)
        except ServetopError as error:
            self._call_later(self.show_message, str(error))
            return ()
