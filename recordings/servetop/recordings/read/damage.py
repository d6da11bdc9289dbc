"""Finds damage that reading alone does not detect: dropped commits, torn and cut pages, and invalid rows."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from servetop.core.text.counted import counted
from servetop.recordings.format.column_bounds import NOT_NULL, valid_row_condition
from servetop.recordings.format.schema import REQUEST
from servetop.recordings.read.table_reader import TableReader
from servetop.recordings.read.wal_check import check_wal

_SQLITE, _PAGE_SIZE_AT, _LARGEST_PAGE = b"SQLite format 3\0", 16, 1 << 16
"""How a file begins, and where the size of its pages is; 1 stands for the largest."""
_SMALL_TABLES = ("run", "tick", "stage", "note")
"""Tables whose pages are checked if a run has no end; checking requests and samples would take seconds."""


def find_losses(tables: TableReader, path: Path, *, ended: bool) -> None:
    """Record commits that SQLite dropped silently, and pages torn by a killed run, as damage."""
    with contextlib.suppress(OSError):
        for found in (cut_page(path), check_wal(path).damage):
            if found is not None:
                tables.record_damage(found)
    if not ended:
        tables.quick_check(_SMALL_TABLES)


def cut_page(path: Path) -> str | None:
    """Return how much a file lacks of its last page, whose missing bytes SQLite reads as zeros; None if it is whole."""
    try:
        with path.open("rb") as file:
            start = file.read(_PAGE_SIZE_AT + 2)
            size = file.seek(0, os.SEEK_END)
    except OSError:  # moved or removed since it was opened
        return None
    if not start.startswith(_SQLITE):  # compressed
        return None
    page = int.from_bytes(start[_PAGE_SIZE_AT:], "big")
    missing = -size % (page if page > 1 else _LARGEST_PAGE)
    return f"{counted(missing, 'byte')} of its last page {'is' if missing == 1 else 'are'} missing" if missing else None


def check_request_rows(tables: TableReader) -> None:
    """Record invalid rows of table `request` as damage; sums and statistics omit them."""
    existing = dict(tables.columns_of("request"))
    if missing := sorted(NOT_NULL - set(existing)):
        tables.record_damage(f"table request has no column {missing[0]}")
    condition = valid_row_condition([column for column in REQUEST.codec.columns if column.name in existing])
    (invalid,) = next(tables.rows("request", ("count(*)",), where=f"NOT ({condition})"), (0,))
    if invalid:
        tables.record_damage(f"{counted(invalid, 'row')} of table request {'is' if invalid == 1 else 'are'} invalid")
