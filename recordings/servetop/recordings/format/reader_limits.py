"""Limits for reading untrusted recordings, whose schema and pages determine what SQLite executes."""

from __future__ import annotations

import contextlib
import sqlite3

MAX_ROW_BYTES = 32 << 20
"""Limit of a row; the longest rows that servetop writes contain the texts of one request."""
MAX_CHUNK_BYTES = 4 << 20
"""Limit of a request's chunk times, enough for a million chunks."""
MAX_STAGES = 5000
_STEPS_BETWEEN = 10_000
_STEPS_BASE, _STEPS_PER_BYTE = 20_000_000, 16
"""Limit of SQLite's virtual machine steps for one query; a scan of a recording takes one or two per byte."""
_ROWS_BASE, _BYTES_PER_ROW = 1000, 16
"""Minimum size of a row; if there are more rows than fit, pages are being read repeatedly."""
_DEFENSIVE = 1010
"""SQLITE_DBCONFIG_DEFENSIVE, which Python can set since 3.12."""


class ReadBudget:
    """Interrupts a query that takes more steps than the file's size explains, such as on a B-tree with a cycle."""

    def __init__(self, connection: sqlite3.Connection, *, size: int | None = None) -> None:
        """Use `size` bytes for a file whose first page may be wrong; None uses SQLite's value."""
        self._connection = connection
        self._fixed_size = size
        self._remaining = _STEPS_BASE
        connection.set_progress_handler(self._spend, _STEPS_BETWEEN)

    def renew(self) -> int:
        """Reset the budget before a query; return how many rows fit into the file. sqlite3.DatabaseError if damaged."""
        size = self._size_now() if self._fixed_size is None else self._fixed_size
        self._remaining = _STEPS_BASE + _STEPS_PER_BYTE * size
        return _ROWS_BASE + size // _BYTES_PER_ROW

    def _size_now(self) -> int:
        """Return the bytes of the file and its write-ahead log, even after a move, or of a copy in memory."""
        count, size = (self._connection.execute(f"PRAGMA page_{name}").fetchone()[0] for name in ("count", "size"))
        return int(count) * int(size)

    def _spend(self) -> int:
        self._remaining -= _STEPS_BETWEEN
        return int(self._remaining < 0)


def harden(connection: sqlite3.Connection, *, salvaging: bool = False) -> None:
    """Make SQLite reject functions in the file's schema, malformed pages, huge values and writes."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA query_only = ON")
    if salvaging:  # otherwise SQLite rejects a file that is shorter than its first page claims
        connection.execute("PRAGMA writable_schema = ON")
    elif hasattr(connection, "setconfig"):
        with contextlib.suppress(sqlite3.Error):
            connection.setconfig(_DEFENSIVE, True)
