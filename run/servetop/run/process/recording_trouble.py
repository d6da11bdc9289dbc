"""What a viewer that does not own a run learns of its recording's trouble: a full disk takes no note of itself."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from servetop.core.clock import Clock, MonotonicClock
from servetop.core.events import Note, Severity
from servetop.core.interfaces.run_source import RunHeader
from servetop.run.process.run_registry import RegistryError, RunRegistry

RECORDER = "recorder"
"""The source of notes about the recording itself."""
_LINE = re.compile(rf"({'|'.join(Severity)}): (\S+): (.+)")
LOOK_EVERY = 0.5
"""Seconds between two looks at the list of runs."""


def alert_line(severity: Severity, source: str, text: str) -> str:
    """A note as a line."""
    return f"{severity.value}: {source}: {text}"


def alert_note(line: str, *, at: float) -> Note | None:
    """The note that a line was made from, at an instant of run time; None for any other line."""
    found = _LINE.fullmatch(line)
    return None if found is None else Note(at=at, severity=Severity(found[1]), source=found[2], text=found[3])


class RecordingTrouble:
    """Called again and again: notes of trouble that the list of runs has and the recording may not."""

    def __init__(self, header: RunHeader, *, registry: RunRegistry | None = None, clock: Clock | None = None) -> None:
        """`clock` counts from the run's second 0."""
        self._pid = header.pid
        self._registry = registry or RunRegistry()
        self._clock = clock or MonotonicClock(header.anchor.origin_ns)
        self._look_at = 0.0
        self._told = ""

    def __call__(self) -> Sequence[Note]:
        """One note when trouble begins, and when it becomes another."""
        now = self._clock.now()
        if now < self._look_at or self._pid is None:
            return ()
        self._look_at = now + LOOK_EVERY
        with contextlib.suppress(RegistryError):
            run = self._registry.of_process(self._pid)
            before, self._told = self._told, run.trouble if run is not None else ""
            if self._told and self._told != before:
                return [Note(at=now, severity=Severity.ERROR, source=RECORDER, text=self._told)]
        return ()
