"""Notes of a run: those of its recording, and those that its process reported while the disk was full."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from servetop.core.events import Note

_SAME_NOTE = 30.0
"""Seconds between the times of a note that was both reported and recorded, at most."""


class RunNotes:
    """All notes in order of time, without duplicates."""

    def __init__(self) -> None:
        self.all: list[Note] = []
        self._pending: list[Note] = []

    def record(self, notes: Sequence[Note]) -> None:
        """Add notes of the recording; they replace equal ones that were reported before."""
        for reported in [each for each in self._pending if any(_is_same(each, note) for note in notes)]:
            self._pending.remove(reported)
            self.all.remove(reported)
        self._add(notes)

    def add_unrecorded(self, notes: Sequence[Note]) -> bool:
        """Add notes that the recording may not contain; whether one was new."""
        new = [note for note in notes if not any(_is_same(note, each) for each in self.all)]
        self._pending += new
        self._add(new)
        return bool(new)

    def _add(self, notes: Sequence[Note]) -> None:
        if notes:
            self.all.extend(notes)
            self.all.sort(key=attrgetter("at"))


def _is_same(one: Note, other: Note) -> bool:
    same = (one.severity, one.source, one.text) == (other.severity, other.source, other.text)
    return same and abs(one.at - other.at) < _SAME_NOTE
