"""Holds ticks as they are read against their checksums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servetop.recordings.format.tick_checksum import CHECKSUM, TickChecksum


class TickChecks:
    """Checks rows of one file; those that an older version wrote have no checksum, and pass."""

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        """`columns` are (name, declared type) in the file's order."""
        names = [name for name, _ in columns]
        self._at = names.index(CHECKSUM) if CHECKSUM in names else None
        self._seq = names.index("seq")
        self._checksum = TickChecksum(columns) if CHECKSUM in names else None
        self._first: int | None = None
        """Number of the first row that has a checksum: from there on each has one."""

    def check(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """ValueError for a tick that is not as it was written; values of rows come in the file's order."""
        if self._checksum is None or self._at is None:
            return
        for row in rows:
            told, seq = row[self._at], row[self._seq]
            if told is None and (self._first is None or seq < self._first):
                continue
            if told != self._checksum.of(row):
                raise ValueError("its checksum does not match: it was torn or altered")
            self._first = seq if self._first is None else min(self._first, seq)
