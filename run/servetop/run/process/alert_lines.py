"""Notes that must be seen at once, as the lines on stderr by which a run process tells them to its owner."""

from __future__ import annotations

import re

from servetop.core.events import Note, Severity

RECORDER = "recorder"
"""The source of notes about the recording itself."""
_LINE = re.compile(rf"({'|'.join(Severity)}): (\S+): (.+)")


def alert_line(severity: Severity, source: str, text: str) -> str:
    """A note as a line."""
    return f"{severity.value}: {source}: {text}"


def alert_note(line: str, *, at: float) -> Note | None:
    """The note that a line was made from, at an instant of run time; None for any other line."""
    found = _LINE.fullmatch(line)
    return None if found is None else Note(at=at, severity=Severity(found[1]), source=found[2], text=found[3])
