"""What went wrong, where nobody can miss it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.geometry import Size

from servetop.core.events import Severity
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import TextRow, fitted
from servetop.tui.panels.panel import Panel
from servetop.tui.state.run_state import Frame

_SETTLED = (0, 130)
_SHOWN_FOR = 15.0
"""Seconds that an error stays up while the run goes on."""


class AlertPanel(Panel):
    """One frame with the error's text; the screen hides it while there is none."""

    def title(self, moment: Frame) -> Sequence[TextRow]:
        """Whether this ended the run."""
        return [[("✖ the run failed" if moment.end else "✖ error", "bad")]]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """As many rows as the text needs, 3 at most."""
        return 1 if self.moment is None else min(max(len(draw_alert(alert_text(self.moment), width, 3)), 1), 3)

    def draw(self, moment: Frame, width: int, height: int) -> Sequence[TextRow]:
        """See `draw_alert`."""
        return draw_alert(alert_text(moment), width, height)


def draw_alert(text: str, width: int, height: int) -> list[TextRow]:
    """The text, broken into lines between words."""
    lines = [""]
    for word in text.split():
        candidate = f"{lines[-1]} {word}".strip()
        lines[-1:] = [candidate] if cell_len(candidate) <= width or not lines[-1] else [lines[-1], word]
    return [fitted([(line, "strong")], width) for line in lines[:height]]


def alert_text(moment: Frame) -> str:
    """Why the run failed, or the error of the last seconds; empty when all is well."""
    if moment.end is not None and moment.end.exit_code not in _SETTLED:
        return sanitize_line(moment.end.reason) or f"the run failed with exit code {moment.end.exit_code}"
    errors = [note for note in moment.notes if note.severity is Severity.ERROR and note.source != "user"]
    recent = [note for note in errors if moment.booting or moment.view.playhead.at - note.at < _SHOWN_FOR]
    return sanitize_line(recent[-1].text) if recent else ""
