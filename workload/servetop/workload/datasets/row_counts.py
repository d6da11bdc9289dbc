"""Numbers of rows of a dataset, as the notes of a run have them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from servetop.core.events import Note
from servetop.workload.datasets.rows import ROWS_IN_FILE, ROWS_LEFT_OUT, ROWS_SKIPPED, Remark

_OLDER = {
    ROWS_SKIPPED: re.compile(r"(?P<count>[\d,]+) bad rows? of the dataset (?:was|were) skipped"),
    ROWS_LEFT_OUT: re.compile(r"(?P<count>[\d,]+) rows? of the dataset (?:was|were) left out: (?P<subject>.*)"),
    ROWS_IN_FILE: re.compile(r"all (?P<count>[\d,]+) prompts of the dataset were sent, then again"),
}
"""What notes said before format 1.12, which had no other count. Never changes, whatever newer notes say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Rows of a dataset as far as a run read it."""

    skipped: int
    """Malformed rows."""
    left_out: int
    """Well-formed rows that the owners of the format do not send either."""
    in_file: int | None
    """Usable rows of the file; None unless all were sent."""

    @classmethod
    def of_notes(cls, notes: Iterable[Note]) -> RowCounts:
        """Return the counts of the notes from `SkippedRows`.

        Senders, and cells of a sweep, read the same file, so the largest number counts.
        """
        skipped, reasons = 0, dict[str, int]()
        in_file: int | None = None
        for note in notes:
            remark = _remark(note)
            count, subject = remark.count or 0, remark.subject or ""
            if remark.fact == ROWS_SKIPPED:
                skipped = max(skipped, count)
            elif remark.fact == ROWS_LEFT_OUT:
                reasons[subject] = max(reasons.get(subject, 0), count)
            elif remark.fact == ROWS_IN_FILE:
                in_file = remark.count
        return cls(skipped=skipped, left_out=sum(reasons.values()), in_file=in_file)


def _remark(note: Note) -> Remark:
    """Return what a note counts; before format 1.12 its text says so."""
    if note.fact is None and note.source == "load":
        for fact, pattern in _OLDER.items():
            if found := pattern.search(note.text):
                parts = found.groupdict()
                return Remark(note.text, fact, parts.get("subject"), int(parts["count"].replace(",", "")))
    return Remark(note.text, note.fact, note.subject, note.count)
