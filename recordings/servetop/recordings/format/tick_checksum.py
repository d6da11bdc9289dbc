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
