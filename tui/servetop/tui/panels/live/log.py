"""The log panel: the last lines of the engine's log, or of a run without one the events."""

from __future__ import annotations

import re
from collections.abc import Sequence

from servetop.core.events import LogLine
from servetop.core.interfaces.run_source import NOT_IMPORTED
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.engines.process.startup_progress import startup_step
from servetop.tui.drawing.log_rows import SEVERITY_STYLES, head
from servetop.tui.drawing.text_runs import TextRow, fitted, placard
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.log_entries import LogEntry, MergedLog, engine_entry
from servetop.tui.state.log_text import shortened_stats

_PATH = re.compile(r"\bRoute: /.*\bMethods?: ")
"""A line of vLLM's list of paths, some 35 at the end of its start."""
_RECENT = 50
"""Lines that are searched for the current start-up step."""


class LogPanel(Panel):
    """The end of the engine's log; while the engine starts, its progress. Without a log, the run's events."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        title = sanitize_line(frame.engine_title)
        if not frame.booting:
            return [[("Events" if _log_elsewhere(frame) else f"{title} log", "title")]]
        if frame.end is not None:
            reason = "no load was sent" if frame.engine else "it never became ready"
            return [[(f"{title} log", "title")], [(reason, "bad")]]
        config = frame.header.config.engine
        limit = config.attach_timeout if config.url else config.start_timeout
        timeout = "" if frame.server else f", timeout {formats.seconds(limit)}"  # one of several is waited for always
        waited = f"{int(frame.view.playhead.at)} s{timeout}"
        verb = "waiting for" if config.url else "starting"
        step = startup_step([line.text for line in frame.log[-_RECENT:]])
        return [[(f"{verb} {title} ", "title"), (waited, "strong"), (f" · {step}" if step else "", "title")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        if frame.log:
            return draw_log(_shown(frame) if height > 0 else (), width, height)
        events = MergedLog().entries(frame) if _log_elsewhere(frame) else ()
        if not events:
            return placard(_why_empty(frame), width=width, height=height)
        return [_row(entry, width) for entry in events[-height:]] if height > 0 else []


def _shown(frame: Frame) -> Sequence[LogLine]:
    """Return the engine's lines; while it starts, without the list of its paths, which hides what it is doing."""
    return [line for line in frame.log if not _PATH.search(line.text)] if frame.booting else frame.log


def draw_log(lines: Sequence[LogLine], width: int, height: int) -> list[TextRow]:
    """Return the last lines that fit, truncated at the width; warnings and errors are marked."""
    return [_row(engine_entry(line), width) for line in lines[-height:]] if height > 0 else []


def _row(entry: LogEntry, width: int) -> TextRow:
    text = (shortened_stats(entry.text), SEVERITY_STYLES[entry.severity])
    return fitted([*head(entry.at, entry.severity, entry.symbol)[1:], text], width)


def _log_elsewhere(frame: Frame) -> bool:
    """Whether the engine was started by another process, which has its log."""
    return bool(frame.header.config.engine.url) and not (frame.engine and frame.engine.managed) and not frame.log


def _why_empty(frame: Frame) -> str:
    if frame.header.imported is not None:
        return NOT_IMPORTED
    if frame.header.config.engine.url is None:
        return "nothing written yet"
    if frame.engine is None:
        return "attaching to the server" if frame.end is None else "not attached"
    return (
        "nothing written yet" if frame.engine.managed else "attached to a running server: its log is not available here"
    )
