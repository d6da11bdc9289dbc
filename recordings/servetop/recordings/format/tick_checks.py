"""Verifies the checksums of ticks as they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servetop.recordings.format.tick_checksum import CHECKSUM, TickChecksum


class TickChecks:
    """Checks the rows of one file; rows of an older version have no checksum and are accepted."""

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        """Use `columns`, pairs of name and declared type in the file's order."""
        names = [name for name, _ in columns]
        self._at = names.index(CHECKSUM) if CHECKSUM in names else None
        self._seq = names.index("seq")
        self._checksum = TickChecksum(columns) if CHECKSUM in names else None
        self._first: int | None = None
        """Number of the first row with a checksum; all later rows have one."""

    def check(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Raise ValueError for an altered tick; the values of `rows` are in the file's column order."""
        if self._checksum is None or self._at is None:
            return
        for row in rows:
            stored, seq = row[self._at], row[self._seq]
            if stored is None and (self._first is None or seq < self._first):
                continue
            if stored != self._checksum.of(row):
                raise ValueError("its checksum does not match: it was torn or altered")
            self._first = seq if self._first is None else min(self._first, seq)
