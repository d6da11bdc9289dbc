"""The engine's own words."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.verdicts.anomalies import severity_of
from servetop.core.events import LogLine, Severity
from servetop.core.text.sanitize import sanitize_line, sanitize_log_line
from servetop.engines.process.startup_progress import boot_step
from servetop.tui.drawing import formats
from servetop.tui.drawing.text_runs import TextRow, fitted, placard
from servetop.tui.panels.panel import Panel
from servetop.tui.state.run_state import Frame

_RECENT = 50
"""Lines that are looked at for what the engine is busy with."""
LOUDNESS = {Severity.INFO: "", Severity.WARNING: "warn", Severity.ERROR: "bad"}
"""Style of a line."""


class LogPanel(Panel):
    """The end of the engine's log; while the engine starts, how long that has taken."""

    def title(self, moment: Frame) -> Sequence[TextRow]:
        """What the log is of, or what is awaited."""
        title = sanitize_line(moment.engine_title)
        if not moment.booting:
            return [[(f"{title} log", "title")]]
        if moment.end is not None:
            return [[(f"{title} log", "title")], [("it never became ready", "bad")]]
        waited = f"{int(moment.view.playhead.at)} s of at most {moment.header.config.engine.start_timeout:.0f} s"
        verb = "waiting for" if moment.header.config.engine.url else "starting"
        step = boot_step([line.text for line in moment.log[-_RECENT:]])
        return [[(f"{verb} {title} ", "title"), (waited, "strong"), (f" · {step}" if step else "", "title")]]

    def draw(self, moment: Frame, width: int, height: int) -> Sequence[TextRow]:
        """See `draw_log`."""
        if not moment.log:
            return placard(_why_empty(moment), width=width, height=height)
        return draw_log(moment.log, width, height)


def draw_log(lines: Sequence[LogLine], width: int, height: int) -> list[TextRow]:
    """The last lines that fit, each cut off at the width; warnings and errors are marked."""
    return [_line(line, width) for line in lines[-height:]] if height > 0 else []


def _line(line: LogLine, width: int) -> TextRow:
    text = sanitize_log_line(line.text)
    return fitted([(f"{formats.clock_time(line.at)[3:]} ", "faint"), (text, LOUDNESS[severity_of(text)])], width)


def _why_empty(moment: Frame) -> str:
    if moment.header.config.engine.url and not (moment.engine and moment.engine.managed):
        return "attached to a running server: its log is where it was started"
    return "nothing written yet"
