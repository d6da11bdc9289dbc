"""A checksum in each row of table `tick`: a tick that was torn or altered is known, and never shown as real.

It is the CRC-32 (zlib's) of a JSON list of the row's values that are no blobs, without blanks, followed by the bytes of
its blobs; both in the order of the file's columns, of which those before `checksum` count, without `seq`.
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
    """Of rows whose columns come in the file's order."""

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        """`columns` are (name, declared type) in the file's order."""
        self.names = tuple(name for name, _ in columns)
        counted = [(at, kind) for at, (name, kind) in enumerate(columns[: self.names.index(CHECKSUM)]) if name != "seq"]
        self._scalars = _getter([at for at, kind in counted if kind != "BLOB"])
        self._blobs = _getter([at for at, kind in counted if kind == "BLOB"])

    def of(self, row: Sequence[Any]) -> int:
        """The checksum of a row, given its values for `names`; what it has for `seq` and `checksum` does not count."""
        blobs = b"".join(filter(None, self._blobs(row)))
        return zlib.crc32(blobs, zlib.crc32(orjson.dumps(self._scalars(row))))


def checksum_in(connection: sqlite3.Connection) -> TickChecksum:
    """As the ticks of a file have it that is open for writing."""
    return TickChecksum([(str(row[1]), str(row[2])) for row in connection.execute("PRAGMA table_info(tick)")])


def _getter(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Values at these places, as a tuple however many they are."""
    if len(places) > 1:
        getter: Callable[[Sequence[Any]], tuple[Any, ...]] = operator.itemgetter(*places)
        return getter
    return lambda values: tuple(values[at] for at in places)
