"""Reports to viewers that a recording cannot be written: a full disk cannot record that it is full."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from servetop.core.clock import Clock, MonotonicClock
from servetop.core.events import Note, Severity
from servetop.core.interfaces.run_source import RunHeader
from servetop.run.process.run_registry import RegistryError, RunRegistry

RECORDER = "recorder"
"""Source of notes about the recording itself."""
_LINE = re.compile(rf"({'|'.join(Severity)}): (\S+): (.+)")
CHECK_SECONDS = 0.5
"""Seconds between two reads of the run registry."""


def alert_line(severity: Severity, source: str, text: str) -> str:
    """Return a note as a line of stderr, by which a run process sends it to its owner."""
    return f"{severity.value}: {source}: {text}"


def alert_note(line: str, *, at: float) -> Note | None:
    """Return the note of such a line, with its run time; None for any other line."""
    found = _LINE.fullmatch(line)
    return None if found is None else Note(at=at, severity=Severity(found[1]), source=found[2], text=found[3])


class RecordingTrouble:
    """Returns notes of trouble that is in the run registry but may not be in the recording; call it often."""

    def __init__(self, header: RunHeader, *, registry: RunRegistry | None = None, clock: Clock | None = None) -> None:
        """`clock` counts from the start of the run."""
        self._pid = header.pid
        self._registry = registry or RunRegistry()
        self._clock = clock or MonotonicClock(header.anchor.origin_ns)
        self._next_check = 0.0
        self._reported = ""

    def __call__(self) -> Sequence[Note]:
        """Return a note when trouble starts or changes."""
        now = self._clock.now()
        if now < self._next_check or self._pid is None:
            return ()
        self._next_check = now + CHECK_SECONDS
        with contextlib.suppress(RegistryError):
            run = self._registry.of_process(self._pid)
            before, self._reported = self._reported, run.trouble if run is not None else ""
            if self._reported and self._reported != before:
                return [Note(at=now, severity=Severity.ERROR, source=RECORDER, text=self._reported)]
        return ()
