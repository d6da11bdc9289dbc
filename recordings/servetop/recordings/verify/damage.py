"""Finds damage that reading alone does not detect: dropped commits, torn pages and invalid rows."""

from __future__ import annotations

import contextlib
from pathlib import Path

from servetop.core.text.counted import counted
from servetop.recordings.format.column_bounds import NOT_NULL, valid_row_condition
from servetop.recordings.format.schema import REQUEST
from servetop.recordings.read.table_reader import TableReader
from servetop.recordings.verify.wal_check import check_wal

_SMALL_TABLES = ("run", "tick", "stage", "note")
"""Tables whose pages are checked if a run has no end; checking requests and samples would take seconds."""


def find_losses(tables: TableReader, path: Path, *, ended: bool) -> None:
    """Record commits that SQLite dropped silently, and pages torn by a killed run, as damage."""
    with contextlib.suppress(OSError):
        torn = check_wal(path).damage
        if torn is not None:
            tables.record_damage(torn)
    if not ended:
        tables.quick_check(_SMALL_TABLES)


def check_request_rows(tables: TableReader) -> None:
    """Record invalid rows of table `request` as damage; sums and statistics omit them."""
    existing = dict(tables.columns_of("request"))
    if missing := sorted(NOT_NULL - set(existing)):
        tables.record_damage(f"table request has no column {missing[0]}")
    condition = valid_row_condition([column for column in REQUEST.codec.columns if column.name in existing])
    (invalid,) = next(tables.rows("request", ("count(*)",), where=f"NOT ({condition})"), (0,))
    if invalid:
        tables.record_damage(f"{counted(invalid, 'row')} of table request {'is' if invalid == 1 else 'are'} invalid")
