"""The bottom lines: messages and commands, and the keys."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined, row_width, spread
from servetop.tui.fleet.watch_keys import FLEET_LINE, OPENED_LINE, WATCH_LINE
from servetop.tui.keys import ALWAYS, COMPARE, LIVE_LINE, REPLAY_LINE, STORY_LINE, TABS, screen_line
from servetop.tui.panels.live.story_card import card_shown
from servetop.tui.panels.panel import Panel
from servetop.tui.panels.tabs import TabLine, draw_tabs, tabs_of
from servetop.tui.state.command_requests import described
from servetop.tui.state.frame import Frame

_OVERVIEW = TABS[0].screen
_REPLY_SHOWN_FOR = 8.0
"""Seconds of run time."""


class StatusLine(TabLine):
    """The app's message, pending commands, or the last reply; else the tabs of the overview."""

    def __init__(self, *, id: str) -> None:
        super().__init__(_OVERVIEW, id=id)

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        return [draw_status(frame, width)]

    def parts(self, width: int) -> list[TextRow]:
        return [] if self.frame is None else status_tabs(self.frame, width)


class KeyLine(Panel):
    """The keys that have an effect now."""

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        if frame.story is not None and card_shown(frame):
            line: Sequence[tuple[str, str]] = STORY_LINE
        else:
            line = LIVE_LINE if frame.steers else _watch_line(frame) if frame.watched else REPLAY_LINE
        return [draw_keys((COMPARE, *line) if frame.against else line, width)]


def _watch_line(frame: Frame) -> Sequence[tuple[str, str]]:
    return FLEET_LINE if frame.fleet is not None else OPENED_LINE if frame.server else WATCH_LINE


class ScreenLine(Panel):
    """The bottom line of a screen behind a number key: messages, then the keys that have an effect there."""

    def __init__(self, keys: Sequence[tuple[str, str]], *, time_axis: bool, id: str) -> None:
        """`keys` are the screen's own; `time_axis`: its charts have the shared time axis, whose length is shown."""
        super().__init__(id=id)
        self._keys = keys
        self._time_axis = time_axis

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        keys = screen_line(self._keys, steering=frame.steers)
        return [draw_screen_line(frame, keys, width, time_axis=self._time_axis)]


def draw_screen_line(frame: Frame, keys: Sequence[tuple[str, str]], width: int, *, time_axis: bool) -> TextRow:
    """A message at the left if there is one, then as many keys as fit; the time axis before esc, help and quit."""
    message = fitted(_message(frame), width // 2)
    shown = time_axis and not frame.booting
    axis: list[Run] = [(f"axis {formats.clock(frame.axis.span)}   ", "faint")] if shown else []
    right: list[Run] = [*_pointed(frame), *axis, ("esc", "key"), (" back  ", "muted")]
    left: TextRow = [*message, ("   ", "")] if message else []
    return [*left, *draw_keys(keys, width - row_width(left), before_help=right)]


def draw_status(frame: Frame, width: int) -> TextRow:
    """The app's message, else pending commands, else the last reply, else the tabs; the time axis at the right."""
    tabs = [run for part in status_tabs(frame, width) for run in part]
    return spread(fitted(_message(frame) or tabs, width), _right(frame), width=width)


def status_tabs(frame: Frame, width: int) -> list[TextRow]:
    """Return the tabs left of the time axis; none while there is a message, or if their titles would be cut."""
    room = width - row_width(_right(frame)) - 2
    parts = [] if _message(frame) else draw_tabs(tabs_of(frame, _OVERVIEW), _OVERVIEW, room)
    return [] if any("…" in text for part in parts for text, _ in part) else parts


def _right(frame: Frame) -> list[Run]:
    return [*_pointed(frame), (_axis(frame), "faint")]


def _axis(frame: Frame) -> str:
    """Return the length of the time axis, and the selected one while the run is shorter than that."""
    if frame.booting:
        return ""
    shown, selected = frame.axis.span, frame.view.span
    return f"axis {formats.clock(shown)}" + (f", grows to {formats.clock(selected)}" if shown < selected else "")


def _pointed(frame: Frame) -> list[Run]:
    """Return the cursor's time, and its distance from the playhead."""
    if frame.cursor is None:
        return []
    back = formats.clock(frame.view.playhead.at - frame.cursor)
    where = "" if frame.cursor >= frame.window[0] else ", left of the axis"
    return [("│ ", "cursor"), (formats.clock_time(frame.cursor), "strong"), (f" −{back}{where}   ", "muted")]


def _message(frame: Frame) -> list[Run]:
    if frame.view.message:
        return [("▸ ", "key"), (sanitize_line(frame.view.message), "")]
    if frame.pending:
        waiting = ", ".join(sanitize_line(described(each.action, each.value, each.text)) for each in frame.pending)
        return [("… ", "warn"), (waiting, "strong"), (" pending", "muted")]
    replied = [each for each in frame.commands if each.reply is not None and each.applied_at is not None]
    last = max(replied, key=lambda each: (each.applied_at or 0.0, each.id), default=None)
    if last is None or frame.view.playhead.at - (last.applied_at or 0.0) > _REPLY_SHOWN_FOR:
        return []
    return [("✓ ", "good"), (sanitize_line(last.reply or ""), "")]


def draw_keys(keys: Sequence[tuple[str, str]], width: int, *, before_help: TextRow = ()) -> TextRow:
    """Help and quit at the right, after `before_help`; of the others as many as fit, most important first."""
    named = [[(caption, "key"), (f" {label}", "muted")] for caption, label in keys]
    always = joined(([(caption, "key"), (f" {label}", "muted")] for caption, label in ALWAYS), width=width, gap="  ")
    right = [*before_help, *always]
    return spread(joined(named, width=width - row_width(right) - 2, gap="  "), right, width=width)
