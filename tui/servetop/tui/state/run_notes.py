"""Notes of a run: those of its recording, and those that its process told its owner when the disk took nothing."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from servetop.core.events import Note

_SAME_NOTE = 30.0
"""Seconds between the instants of a note that was told in both ways, at most."""


class RunNotes:
    """In order of time, each once."""

    def __init__(self) -> None:
        self.all: list[Note] = []
        self._pending: list[Note] = []

    def record(self, notes: Sequence[Note]) -> None:
        """Take in notes of the recording; they take the places of those that were told before."""
        for told in [each for each in self._pending if any(_is_same(each, note) for note in notes)]:
            self._pending.remove(told)
            self.all.remove(told)
        self._add(notes)

    def add_unrecorded(self, notes: Sequence[Note]) -> bool:
        """Take in notes that the recording may not hold; whether there was a new one."""
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
