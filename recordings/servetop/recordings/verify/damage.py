"""Looks for damage that reading alone does not meet: dropped commits, torn pages, rows that make no sense."""

from __future__ import annotations

import contextlib
from pathlib import Path

from servetop.recordings.format.column_bounds import ALWAYS_THERE, sane
from servetop.recordings.format.schema import REQUEST
from servetop.recordings.read.table_reader import TableReader
from servetop.recordings.verify.wal_check import check_wal

_SMALL_TABLES = ("run", "tick", "stage", "note")
"""Their pages are checked of a run that did not end; those of requests and samples would take seconds."""


def look_for_losses(tables: TableReader, path: Path, *, ended: bool) -> None:
    """SQLite says nothing of commits that it drops, and a run that was killed may have torn a page."""
    with contextlib.suppress(OSError):
        torn = check_wal(path).damage
        if torn is not None:
            tables.blame(torn)
    if not ended:
        tables.quick_check(_SMALL_TABLES)


def check_request_rows(tables: TableReader) -> None:
    """Note it as damage when rows of table `request` make no sense; sums and figures leave them out."""
    there = dict(tables.columns_of("request"))
    if missing := sorted(ALWAYS_THERE - set(there)):
        tables.blame(f"table request has no column {missing[0]}")
    condition = sane([column for column in REQUEST.codec.columns if column.name in there])
    (bad,) = next(tables.rows("request", ("count(*)",), where=f"NOT ({condition})"), (0,))
    if bad:
        tables.blame(f"{bad} rows of table request make no sense")
