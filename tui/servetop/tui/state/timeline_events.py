"""Events of a run as symbols on the timeline and as text."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.analysis.verdicts.anomalies import Anomaly, AnomalyKind
from servetop.core.events import Action, Note, Severity
from servetop.core.text.sanitize import sanitize_line, sanitize_log_line
from servetop.tui.state.command_requests import described
from servetop.tui.state.frame import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """One event: its time, its symbol and its text."""

    at: float
    symbol: str
    style: str
    text: str
    weight: int
    """The heaviest is drawn if several share a cell."""


_NOTES = {Severity.INFO: ("•", "muted", 1), Severity.WARNING: ("▲", "warn", 3), Severity.ERROR: ("✖", "bad", 4)}


_ANOMALIES = {
    AnomalyKind.STALL: ("✖", "bad", 4),
    AnomalyKind.LOG_ERROR: ("✖", "bad", 4),
    AnomalyKind.KNEE: ("◇", "key", 2),
}
"""Symbol, style and weight of anomalies; all others are warnings."""


def timeline_events(frame: Frame) -> list[TimelineEvent]:
    """Notes, marks, anomalies and applied commands of the whole run, by time, including those after the time shown."""
    events = [_note(note) for note in frame.all_notes]
    events += [_anomaly(anomaly) for anomaly in frame.anomalies]
    events += [
        TimelineEvent(
            at=command.at,
            symbol="●",
            style="key",
            text=sanitize_line(command.reply or described(command.action, command.value)),
            weight=2,
        )
        for command in frame.commands
        if command.action is not Action.MARK
    ]
    return sorted(events, key=lambda event: event.at)


def _anomaly(anomaly: Anomaly) -> TimelineEvent:
    symbol, style, weight = _ANOMALIES.get(anomaly.kind, _NOTES[Severity.WARNING])
    return TimelineEvent(at=anomaly.at, symbol=symbol, style=style, text=sanitize_log_line(anomaly.text), weight=weight)


def _note(note: Note) -> TimelineEvent:
    text = sanitize_line(note.text)
    if note.source == "user":
        return TimelineEvent(at=note.at, symbol="◆", style="yellow", text=text, weight=5)
    symbol, style, weight = _NOTES[note.severity]
    return TimelineEvent(
        at=note.at, symbol=symbol, style=style, text=f"{sanitize_line(note.source)}: {text}", weight=weight
    )
