"""Numbers of rows of a dataset, as the notes of a run have them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SKIPPED = re.compile(r"([\d,]+) bad rows? of the dataset (?:was|were) skipped")
_LEFT_OUT = re.compile(r"([\d,]+) rows? of the dataset (?:was|were) left out: (.*)")
_REPEATED = re.compile(r"all ([\d,]+) prompts of the dataset were sent, then again")


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
    def of_notes(cls, texts: Iterable[str]) -> RowCounts:
        """Read the notes of `SkippedRows`.

        Senders, and cells of a sweep, read the same file, so the largest number counts.
        """
        skipped, reasons = 0, dict[str, int]()
        in_file: int | None = None
        for text in texts:
            if found := _SKIPPED.search(text):
                skipped = max(skipped, _number(found[1]))
            elif found := _LEFT_OUT.search(text):
                reasons[found[2]] = max(reasons.get(found[2], 0), _number(found[1]))
            elif found := _REPEATED.search(text):
                in_file = _number(found[1])
        return cls(skipped=skipped, left_out=sum(reasons.values()), in_file=in_file)


def _number(text: str) -> int:
    return int(text.replace(",", ""))
