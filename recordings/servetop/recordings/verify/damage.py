"""Finds damage that reading alone does not detect: dropped commits, torn pages, invalid rows."""

from __future__ import annotations

import contextlib
from pathlib import Path

from servetop.recordings.format.column_bounds import ALWAYS_THERE, sane
from servetop.recordings.format.schema import REQUEST
from servetop.recordings.read.table_reader import TableReader
from servetop.recordings.verify.wal_check import check_wal

_SMALL_TABLES = ("run", "tick", "stage", "note")
"""Tables whose pages are checked if a run did not end; requests and samples would take seconds."""


def find_losses(tables: TableReader, path: Path, *, ended: bool) -> None:
    """Find commits that SQLite dropped silently, and pages torn by a killed run."""
    with contextlib.suppress(OSError):
        torn = check_wal(path).damage
        if torn is not None:
            tables.blame(torn)
    if not ended:
        tables.quick_check(_SMALL_TABLES)


def check_request_rows(tables: TableReader) -> None:
    """Record invalid rows of table `request` as damage; sums and statistics leave them out."""
    there = dict(tables.columns_of("request"))
    if missing := sorted(ALWAYS_THERE - set(there)):
        tables.blame(f"table request has no column {missing[0]}")
    condition = sane([column for column in REQUEST.codec.columns if column.name in there])
    (bad,) = next(tables.rows("request", ("count(*)",), where=f"NOT ({condition})"), (0,))
    if bad:
        tables.blame(f"{bad} rows of table request are invalid")
