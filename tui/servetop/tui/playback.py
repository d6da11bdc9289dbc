"""The keys and the mouse that move through time: playhead, cursor, time axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from textual.app import App

from servetop.core.errors import ServetopError
from servetop.core.events import RequestRecord
from servetop.core.interfaces.run_source import RunSource
from servetop.core.tick import Tick
from servetop.tui.appearance import DashboardOptions
from servetop.tui.drawing.cursor import FAR, Cursor
from servetop.tui.panels.live.timeline import TimelinePanel
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.screens.question import TimeQuestion
from servetop.tui.state.command_requests import NOTHING_TO_STEER, READ_ONLY
from servetop.tui.state.frame import MOST_REQUESTS, View
from servetop.tui.state.run_state import SERIES_BINS, RunState
from servetop.tui.state.time_input import event_times, next_event_time

SPANS = (30.0, 120.0, 600.0, 0.0)
"""Time axes that the zoom key and the wheel go through; 0 is all of the run."""
_RECENT = 300.0
"""Seconds before an instant whose latencies say how long its requests may take."""
_PATIENCE = 3.0
"""Of the 99th percentile of E2E latency: so long after an instant requests under way then are looked for."""
_NEAR_SEEK = 5.0
"""Seconds; a longer seek moves the cursor far."""


class Playback(App[str]):
    """What an app can do to a view of a run; where the run and the view come from is the subclass's business."""

    options: DashboardOptions
    _source: RunSource
    _run: RunState
    _view: View

    def update_view(self, **changes: Any) -> None:
        """Change the view and draw it."""
        raise NotImplementedError

    def show_message(self, text: str) -> None:
        """One line for a few seconds."""
        raise NotImplementedError

    @property
    def steers(self) -> bool:
        """The run goes on, and keys may steer it."""
        return self._source.is_live() and not self.options.read_only

    def may_steer(self) -> bool:
        """The same; says why not."""
        if not self.steers:
            self.show_message(READ_ONLY if self._source.is_live() else NOTHING_TO_STEER)
        return self.steers

    def action_step_concurrency(self, direction: int) -> None:
        """Lower (-1) or raise (1) the concurrency limit."""
        raise NotImplementedError

    def _requests(self, start: float, until: float) -> Sequence[RequestRecord]:
        """Read from the source; those that end long after `until` are left out: a seek must not read the whole run."""
        history = self._run.history
        recent = history.first_from(until - _RECENT)
        tail = history.percentiles("e2el", start=recent, stop=history.up_to(until))[2]
        ended_by = until + _PATIENCE * (1.0 if math.isnan(tail) else tail)
        try:
            return self._source.requests(start, until, ended_by=ended_by, most=MOST_REQUESTS)
        except ServetopError as error:
            self.call_later(self.show_message, str(error))
            return ()

    def _past_ticks(self, first: int, last: int) -> Sequence[Tick]:
        """Ticks that are no longer in memory, by number; none where they cannot be read."""
        try:
            return self._source.past_ticks(first, last)
        except ServetopError as error:
            self.call_later(self.show_message, str(error))
            return ()

    # The playhead.

    def action_seek(self, by: float) -> None:
        """Move by seconds; while the cursor is shown, move that."""
        if self._view.cursor is not None:
            self._move_cursor(math.copysign(1 if abs(by) <= _NEAR_SEEK else FAR, by))
        else:
            self.update_view(playhead=self._view.playhead.moved_by(by, edge=self._run.edge))

    def action_step(self, ticks: int) -> None:
        """Move by ticks, and pause."""
        self.update_view(playhead=self._view.playhead.stepped(ticks, edge=self._run.edge))

    def action_go_to_start(self) -> None:
        """To second 0."""
        self.update_view(playhead=self._view.playhead.at_start())

    def action_go_to_edge(self) -> None:
        """To the newest, following it."""
        self.update_view(playhead=self._view.playhead.at_edge(edge=self._run.edge))

    def action_scale_speed(self, factor: float) -> None:
        """Play faster or slower."""
        self.update_view(playhead=self._view.playhead.scaled(factor))

    def action_enter_time(self) -> None:
        """Ask where to go to, and go there."""
        self.push_screen(TimeQuestion(edge=self._run.edge), self._go_to)

    def _go_to(self, at: float | None) -> None:
        if at is not None:
            self.update_view(playhead=self._view.playhead.moved_to(at, edge=self._run.edge))

    def action_go_to_event(self, direction: int) -> None:
        """To the event before (-1) or after (1) the playhead."""
        run = self._run
        times = event_times(run.stages, run.notes, run.commands.values(), run.anomalies.all)
        at = next_event_time(times, self._view.playhead.at, direction=direction)
        if at is None:
            self.show_message(f"no event {'after' if direction > 0 else 'before'} this instant")
        else:
            self._go_to(at)

    def action_bracket(self, direction: int) -> None:
        """`[` and `]`: the concurrency limit while the run is watched at its edge, else the event before or after."""
        if self.steers and self._view.playhead.following:
            self.action_step_concurrency(direction)
        else:
            self.action_go_to_event(direction)

    def on_timeline_panel_chosen(self, message: TimelinePanel.Chosen) -> None:
        """A click on the time line seeks; at its right end it follows the newest."""
        if message.share >= 1 and self._source.is_live():
            self.action_go_to_edge()
        else:
            self._go_to(message.share * self._run.edge)

    # The cursor.

    def action_toggle_cursor(self) -> None:
        """Show the cursor at the playhead, loose; or take it away."""
        self.update_view(cursor=None if self._view.cursor else Cursor(at=self._view.playhead.at))

    def action_leave(self) -> None:
        """Escape: without the cursor, then without a focused panel."""
        if self._view.cursor is not None:
            self.update_view(cursor=None)
        else:
            self.screen.set_focus(None)

    def _move_cursor(self, steps: float) -> None:
        cursor, end = self._view.cursor, self._view.playhead.at
        if cursor is not None:
            window = (end - (self._view.span or end), end)
            self.update_view(cursor=cursor.moved(steps, window=window, bins=SERIES_BINS))

    def on_time_chart_pointed(self, message: TimeChart.Pointed) -> None:
        """A click puts the cursor there; passing over the chart takes a loose cursor along."""
        cursor = self._view.cursor
        loose = cursor is not None and cursor.follows_mouse
        moved = Cursor(at=message.at, follows_mouse=loose and not message.pressed, latency=message.latency)
        if (message.pressed or loose) and cursor != moved:
            self.update_view(cursor=moved)

    # The time axis.

    def action_zoom(self) -> None:
        """The next longer time axis; after the longest, the shortest."""
        self.update_view(span=SPANS[(SPANS.index(self._view.span) + 1) % len(SPANS)])

    def on_time_chart_zoomed(self, message: TimeChart.Zoomed) -> None:
        """The next shorter or longer axis; at the ends it stays."""
        place = SPANS.index(self._view.span) + message.direction
        if 0 <= place < len(SPANS):
            self.update_view(span=SPANS[place])
