"""Moves through a run: playhead, cursor and time axis. Independent of Textual."""

from __future__ import annotations

import math
from typing import Any

from servetop.tui.drawing.cursor import FAR, Cursor
from servetop.tui.run_viewer import RunViewer
from servetop.tui.state.frame import DEFAULT_SPAN
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.run_state import SERIES_BINS
from servetop.tui.state.time_input import event_times, next_event_time

SPANS = (30.0, 120.0, 600.0, 0.0)
"""Lengths of the time axis in seconds, in the order of the zoom key; 0 is the whole run."""
_NEAR_SEEK = 5.0
"""Seconds; a longer seek moves the cursor by `FAR` bins."""


class Playback:
    """Changes the playhead, the cursor and the time axis of a viewer."""

    def __init__(self, viewer: RunViewer) -> None:
        self._viewer = viewer

    @property
    def _playhead(self) -> Playhead:
        return self._viewer.view.playhead

    @property
    def edge(self) -> float:
        """The end of the run as far as it is recorded, seconds."""
        return self._viewer.run.edge

    def _show(self, playhead: Playhead, **changes: Any) -> None:
        """Show a time of the run; the story is shown again if that is the end."""
        self._viewer.update_view(playhead=playhead, story_hidden=False, **changes)

    def _jump(self, playhead: Playhead) -> None:
        """Show a time with the axis for it, unless the user selected one: at the end of a run all of it."""
        whole = playhead.at >= self.edge and not self._viewer.source.is_live()
        zoomed = self._viewer.view.zoomed
        self._show(playhead, span=self._viewer.view.span if zoomed else 0.0 if whole else DEFAULT_SPAN)

    def toggle(self) -> None:
        """Play or pause."""
        self._jump(self._playhead.toggled(edge=self.edge, load_at=self._viewer.run.load_at))

    def seek(self, seconds: float) -> None:
        """Move the cursor if it is shown, else the playhead."""
        if self._viewer.view.cursor is not None:
            self._move_cursor(math.copysign(1 if abs(seconds) <= _NEAR_SEEK else FAR, seconds))
        else:
            self._show(self._playhead.moved_by(seconds, edge=self.edge))

    def step(self, ticks: int) -> None:
        """Move by ticks, and pause."""
        self._show(self._playhead.stepped(ticks, edge=self.edge))

    def go_to_start(self) -> None:
        """Move to second 0."""
        self._jump(self._playhead.at_start())

    def go_to_edge(self) -> None:
        """Move to the newest tick, and follow it."""
        self._jump(self._playhead.at_edge(edge=self.edge))

    def go_to(self, at: float | None) -> None:
        """Move to a time in seconds; None does nothing."""
        if at is not None:
            self._jump(self._playhead.moved_to(at, edge=self.edge))

    def go_to_share(self, share: float) -> None:
        """Move to a share of the run's length; 1 follows the newest tick of a live run."""
        if share >= 1 and self._viewer.source.is_live():
            self.go_to_edge()
        else:
            self.go_to(share * self.edge)

    def go_to_event(self, direction: int) -> None:
        """Move to the event before (-1) or after (1) the playhead."""
        run = self._viewer.fleet_view.shown_run(self._viewer.view)
        times = event_times(run.stages, run.notes, run.commands.values(), run.judged.episodes)
        at = next_event_time(times, self._playhead.at, direction=direction)
        if at is None:
            self._viewer.show_message(f"no event {'after' if direction > 0 else 'before'} this time")
        else:
            self.go_to(at)

    def select_story_line(self, line: int) -> None:
        """Select a line of the run's story by its number from 0; the nearest one if there is none with that number."""
        story = self._viewer.run.story_at(self._playhead.at)
        if story is not None:
            self._viewer.update_view(story_line=min(max(line, 0), len(story.lines) - 1))

    def step_story_line(self, lines: int) -> None:
        """Move the selection in the run's story by lines."""
        self.select_story_line(self._viewer.view.story_line + lines)

    def go_to_story_line(self) -> None:
        """Pause at the time at which the selected line of the story was known; one about the whole run has none."""
        story = self._viewer.run.story_at(self._playhead.at)
        if story is None:
            return
        line = story.lines[min(self._viewer.view.story_line, len(story.lines) - 1)]
        if line.at is None:
            self._viewer.show_message("this line is about the whole run: it has no time to go to")
        else:
            self._jump(self._playhead.paused_at(line.at if line.known_at is None else line.known_at, edge=self.edge))
            ended = self._viewer.run.story_at(self._playhead.at) is not None
            self._viewer.show_message("this is the end of the run" if ended else f"End returns · {line.text}")

    def hide_story(self) -> None:
        """Close the story until the end is reached again."""
        self._viewer.update_view(story_hidden=True)

    def scale_speed(self, factor: float) -> None:
        """Multiply the playing speed."""
        self._viewer.update_view(playhead=self._playhead.scaled(factor))

    def toggle_cursor(self) -> None:
        """Show the cursor at the playhead, or remove it."""
        cursor = None if self._viewer.view.cursor else Cursor(at=self._playhead.at)
        self._viewer.update_view(cursor=cursor)

    def remove_cursor(self) -> bool:
        """Remove the cursor; whether there was one."""
        shown = self._viewer.view.cursor is not None
        if shown:
            self._viewer.update_view(cursor=None)
        return shown

    def point_at(self, at: float, *, pressed: bool, latency: float | None) -> None:
        """Handle the mouse over a chart: a click sets the cursor, a movement takes one that follows the mouse along."""
        cursor = self._viewer.view.cursor
        loose = cursor is not None and cursor.follows_mouse
        moved = Cursor(at=at, follows_mouse=loose and not pressed, latency=latency)
        if (pressed or loose) and cursor != moved:
            self._viewer.update_view(cursor=moved)

    def _move_cursor(self, steps: float) -> None:
        cursor, end = self._viewer.view.cursor, self._playhead.at
        if cursor is not None:
            window = self._viewer.run.axis(self._viewer.view).window(end)
            self._viewer.update_view(cursor=cursor.moved(steps, window=window, bins=SERIES_BINS, newest=end))

    def cycle_span(self) -> None:
        """Select the next longer time axis; after the longest, the shortest."""
        self._select_span(SPANS[(SPANS.index(self._viewer.view.span) + 1) % len(SPANS)])

    def zoom(self, direction: int) -> None:
        """Select the next shorter (-1) or longer (1) time axis, if there is one."""
        position = SPANS.index(self._viewer.view.span) + direction
        if 0 <= position < len(SPANS):
            self._select_span(SPANS[position])

    def _select_span(self, span: float) -> None:
        self._viewer.update_view(span=span, zoomed=True)
