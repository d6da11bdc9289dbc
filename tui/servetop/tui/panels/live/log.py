"""The log panel: the last lines of the engine's log."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.judgement.log_severity import severity_of
from servetop.core.events import LogLine, Severity
from servetop.core.text.sanitize import sanitize_line, sanitize_log_line
from servetop.engines.process.startup_progress import startup_step
from servetop.tui.drawing import formats
from servetop.tui.drawing.text_runs import TextRow, fitted, placard
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

_RECENT = 50
"""Lines that are searched for the current start-up step."""
SEVERITY_STYLES = {Severity.INFO: "", Severity.WARNING: "warn", Severity.ERROR: "bad"}
"""The style of a line by its severity."""


class LogPanel(Panel):
    """The end of the engine's log; while the engine starts, its progress."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        title = sanitize_line(frame.engine_title)
        if not frame.booting:
            return [[(f"{title} log", "title")]]
        if frame.end is not None:
            return [[(f"{title} log", "title")], [("it never became ready", "bad")]]
        config = frame.header.config.engine
        limit = config.attach_timeout if config.url else config.start_timeout
        waited = f"{int(frame.view.playhead.at)} s, timeout {formats.seconds(limit)}"
        verb = "waiting for" if config.url else "starting"
        step = startup_step([line.text for line in frame.log[-_RECENT:]])
        return [[(f"{verb} {title} ", "title"), (waited, "strong"), (f" · {step}" if step else "", "title")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        if not frame.log:
            return placard(_why_empty(frame), width=width, height=height)
        return draw_log(frame.log, width, height)


def draw_log(lines: Sequence[LogLine], width: int, height: int) -> list[TextRow]:
    """The last lines that fit, truncated at the width; warnings and errors are coloured."""
    return [_line(line, width) for line in lines[-height:]] if height > 0 else []


def _line(line: LogLine, width: int) -> TextRow:
    text = sanitize_log_line(line.text)
    return fitted([(f"{formats.clock_time(line.at)[3:]} ", "faint"), (text, SEVERITY_STYLES[severity_of(text)])], width)


def _why_empty(frame: Frame) -> str:
    if frame.header.config.engine.url is None:
        return "nothing written yet"
    if frame.engine is None:
        return "attaching to the server" if frame.end is None else "not attached"
    return (
        "nothing written yet" if frame.engine.managed else "attached to a running server: its log is not available here"
    )
