"""The two bottom lines: messages and commands, and the keys."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing import formats
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined, row_width, spread
from servetop.tui.keys import ALWAYS, LIVE_LINE, REPLAY_LINE
from servetop.tui.panels.panel import Panel
from servetop.tui.state.command_requests import described
from servetop.tui.state.frame import Frame

_REPLY_SHOWN_FOR = 8.0
"""Seconds of run time."""


class StatusLine(Panel):
    """The app's message, pending commands, or the last reply."""

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        return [draw_status(frame, width)]


class KeyLine(Panel):
    """The keys that have an effect now."""

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        return [draw_keys(LIVE_LINE if frame.live and not frame.read_only else REPLAY_LINE, width)]


def draw_status(frame: Frame, width: int) -> TextRow:
    """The app's message, else pending commands, else the last reply; the time axis at the right."""
    return spread(fitted(_message(frame), width), [*_pointed(frame), (_axis(frame), "faint")], width=width)


def _axis(frame: Frame) -> str:
    """The length of the time axis, and the selected one while the run is shorter than that."""
    if frame.booting:
        return ""
    shown, selected = frame.axis.span, frame.view.span
    return f"axis {formats.minutes(shown)}" + (f" of {formats.minutes(selected)}" if shown < selected else "")


def _pointed(frame: Frame) -> list[Run]:
    """The cursor's time, and its distance from the playhead."""
    if frame.cursor is None:
        return []
    back = formats.minutes(frame.view.playhead.at - frame.cursor)
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


def draw_keys(keys: Sequence[tuple[str, str]], width: int) -> TextRow:
    """Help and quit at the right; of the others as many as fit, most important first."""
    named = [[(caption, "key"), (f" {label}", "muted")] for caption, label in keys]
    always = joined(([(caption, "key"), (f" {label}", "muted")] for caption, label in ALWAYS), width=width, gap="  ")
    return spread(joined(named, width=width - row_width(always) - 2, gap="  "), always, width=width)
