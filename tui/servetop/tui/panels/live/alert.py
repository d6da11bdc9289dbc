"""The error of a run, in a box of its own."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.geometry import Size

from servetop.core.events import Severity
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import TextRow, fitted
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

_SETTLED = (0, 130)
_CROSS = "✖ "
_SHOWN_FOR = 15.0
"""Seconds that an error stays visible in a live run."""


class AlertPanel(Panel):
    """The error's text, framed where there is room; the screen hides it if there is none."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        return [[("the run failed" if frame.end else "error", "bad")]]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return 1 if self.frame is None else min(max(len(draw_alert(alert_text(self.frame), width, 3)), 1), 3)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return draw_alert(alert_text(frame), width, height)


def draw_alert(text: str, width: int, height: int) -> list[TextRow]:
    """Return the text after a cross, wrapped between words; an ellipsis where more follows."""
    lines, room = [""], width - cell_len(_CROSS)
    for word in text.split():
        candidate = f"{lines[-1]} {word}".strip()
        lines[-1:] = [candidate] if cell_len(candidate) <= room or not lines[-1] else [lines[-1], word]
    if len(lines) > height > 0:
        while cell_len(lines[height - 1]) >= room and " " in lines[height - 1]:
            lines[height - 1] = lines[height - 1].rpartition(" ")[0]
        lines[height - 1] += "…"
    heads = (_CROSS, *[" " * cell_len(_CROSS)] * len(lines))
    return [fitted([(head, "bad"), (line, "strong")], width) for head, line in zip(heads, lines[:height], strict=False)]


def alert_text(frame: Frame) -> str:
    """Return the reason of a failed run, or the error of the last seconds; empty if there is none."""
    if frame.end is not None and frame.end.exit_code not in _SETTLED:
        return sanitize_line(frame.end.reason) or f"the run failed with exit code {frame.end.exit_code}"
    errors = [note for note in frame.notes if note.severity is Severity.ERROR and note.source != "user"]
    recent = [note for note in errors if frame.booting or frame.view.playhead.at - note.at < _SHOWN_FOR]
    return sanitize_line(recent[-1].text) if recent else ""
