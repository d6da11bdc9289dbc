"""The checksum in each row of table `tick`, which detects torn and altered ticks.

It is the CRC-32 (zlib) of a JSON list, without spaces, of the row's values other than blobs, followed by the bytes
of its blobs; both in the order of the file's columns before `checksum`, without `seq`.
"""

from __future__ import annotations

import operator
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import orjson

CHECKSUM = "checksum"


class TickChecksum:
    """Computes checksums of rows whose columns are in the file's order."""

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        """Use `columns`, pairs of name and declared type in the file's order."""
        self.names = tuple(name for name, _ in columns)
        covered = [(at, kind) for at, (name, kind) in enumerate(columns[: self.names.index(CHECKSUM)]) if name != "seq"]
        self._scalars = _getter([at for at, kind in covered if kind != "BLOB"])
        self._blobs = _getter([at for at, kind in covered if kind == "BLOB"])

    def of(self, row: Sequence[Any]) -> int:
        """Return the checksum of a row with values for `names`; those of `seq` and `checksum` are ignored."""
        blobs = b"".join(filter(None, self._blobs(row)))
        return zlib.crc32(blobs, zlib.crc32(orjson.dumps(self._scalars(row))))


def checksum_in(connection: sqlite3.Connection) -> TickChecksum:
    """Return the checksum for a file that is open for writing."""
    return TickChecksum([(str(row[1]), str(row[2])) for row in connection.execute("PRAGMA table_info(tick)")])


def _getter(positions: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return a function that returns the values at some positions, always as a tuple."""
    if len(positions) > 1:
        getter: Callable[[Sequence[Any]], tuple[Any, ...]] = operator.itemgetter(*positions)
        return getter
    return lambda values: tuple(values[at] for at in positions)


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
