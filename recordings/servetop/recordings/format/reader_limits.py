"""Limits for reading: a recording may come from elsewhere, and SQLite would do whatever the file demands."""

from __future__ import annotations

import contextlib
import sqlite3

LONGEST_VALUE = 32 << 20
"""Bytes of a row; the longest rows that servetop writes hold the texts of one request."""
LONGEST_CHUNKS = 4 << 20
"""Bytes of a request's chunk times: a million chunks."""
MOST_STAGES = 5000
_STEPS_BETWEEN = 10_000
_STEPS_BASE, _STEPS_PER_BYTE = 20_000_000, 16
"""Steps of SQLite's virtual machine for one query; a scan of our tables takes one or two per byte."""
_ROWS_BASE, _BYTES_PER_ROW = 1000, 16
"""Shortest possible row; more rows than fit mean that the same pages are read again and again."""
_DEFENSIVE = 1010
"""SQLITE_DBCONFIG_DEFENSIVE; Python can set it since 3.12."""


class ReadBudget:
    """Ends a query that takes more steps than the file's size explains, such as on a B-tree with a loop in it."""

    def __init__(self, connection: sqlite3.Connection, *, size: int | None = None) -> None:
        """`size` is the bytes of a file whose first page may be wrong about it; None uses SQLite's value."""
        self._connection = connection
        self._fixed_size = size
        self._left = _STEPS_BASE
        connection.set_progress_handler(self._spend, _STEPS_BETWEEN)

    def renew(self) -> int:
        """Reset before a query; return how many rows the file has room for. sqlite3.DatabaseError if it is damaged."""
        size = self._size_now() if self._fixed_size is None else self._fixed_size
        self._left = _STEPS_BASE + _STEPS_PER_BYTE * size
        return _ROWS_BASE + size // _BYTES_PER_ROW

    def _size_now(self) -> int:
        """Bytes of the file with its write-ahead log, even after a move, or of a copy in memory."""
        pages, page = (self._connection.execute(f"PRAGMA page_{each}").fetchone()[0] for each in ("count", "size"))
        return int(pages) * int(page)

    def _spend(self) -> int:
        self._left -= _STEPS_BETWEEN
        return int(self._left < 0)


def harden(connection: sqlite3.Connection, *, salvaging: bool = False) -> None:
    """Make SQLite distrust the file: no functions from its schema, no malformed pages, no huge values, no writes."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA query_only = ON")
    if salvaging:  # otherwise SQLite refuses a file that is shorter than its first page says
        connection.execute("PRAGMA writable_schema = ON")
    elif hasattr(connection, "setconfig"):
        with contextlib.suppress(sqlite3.Error):
            connection.setconfig(_DEFENSIVE, True)
