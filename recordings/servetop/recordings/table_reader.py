"""Rows and events from the tables of an open file, as far as they can be read."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from servetop.core.errors import RecordingError
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.recordings.codec import Row
from servetop.recordings.opening import is_damage
from servetop.recordings.schema import TICK, EventTable

_BLOCK = 1000
"""Rows decoded together."""


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Decoding makes many objects and no cycles: looking for cycles would double the time to open an hour."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class TableReader:
    """Reads what is there: columns that an older version did not write are left out, damage ends a table early."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, damage: str | None = None) -> None:
        self._connection = connection
        self._path = path
        self._columns: dict[str, frozenset[str]] = {}
        self._cause = damage
        self._seen_types: set[tuple[object, ...]] = set()
        self.last_tick_end: float | None = None
        """Of the ticks read so far; seconds."""

    @property
    def damage(self) -> str | None:
        """What is wrong and what was read all the same, on one line; None as long as nothing was found wrong."""
        if self._cause is None:
            return None
        read = "no tick" if self.last_tick_end is None else f"the first {self.last_tick_end:.1f} s"
        return f"{self._path} is damaged ({self._cause}): {read} could be read, what follows is lost"

    def data_version(self) -> int:
        """Another number whenever another connection has committed something."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is from one instant, as the writer's transactions left it."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.DatabaseError):  # a damaged file makes even that fail, harmlessly
                self._connection.execute("ROLLBACK")

    def rows(
        self, table: str, columns: Sequence[str], *, where: str = "", parameters: Sequence[Any] = (), order: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """Stream rows; ends early at damage. RecordingError when the disk or a lock is in the way."""
        condition = f" WHERE {where}" if where else ""
        ordered = f" ORDER BY {order}" if order else ""
        try:
            yield from self._connection.execute(
                f"SELECT {', '.join(columns)} FROM {table}{condition}{ordered}", tuple(parameters)
            )
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise RecordingError(f"cannot read {self._path} ({error}): is the disk all right?") from error
            self._cause = self._cause or str(error)

    def or_null(self, table: str, columns: Sequence[str]) -> list[str]:
        """Columns and expressions as an SQL selection: NULL for the columns that this file does not have."""
        there = self._columns_of(table)
        return ["NULL" if name.isidentifier() and name not in there else name for name in columns]

    def row_dicts(
        self, table: str, columns: Sequence[str], *, where: str = "", parameters: Sequence[Any] = (), order: str = ""
    ) -> Iterator[dict[str, Any]]:
        """Rows by column name, without the columns that this file does not have."""
        known = [name for name in columns if name in self._columns_of(table)]
        if known:
            for row in self.rows(table, known, where=where, parameters=parameters, order=order):
                yield dict(zip(known, row, strict=True))

    def events(
        self, table: EventTable, *, where: str = "", parameters: Sequence[Any] = (), order: str = "seq"
    ) -> list[Any]:
        """Events in order of `order`; a row that makes no sense is left out, and is damage."""
        return [event for _, event in self._numbered(table, where=where, parameters=parameters, order=order)]

    def events_after(self, table: EventTable, seq: int) -> tuple[list[Any], int]:
        """Events written after number `seq`, and the number of the last of them."""
        numbered = list(self._numbered(table, where="seq > ?", parameters=(seq,), order="seq"))
        return [event for _, event in numbered], numbered[-1][0] if numbered else seq

    def _numbered(
        self, table: EventTable, *, where: str, parameters: Sequence[Any], order: str
    ) -> Iterator[tuple[int, Any]]:
        rows = self.row_dicts(table.name, ("seq", *table.names), where=where, parameters=parameters, order=order)
        while block := list(itertools.islice(rows, _BLOCK)):
            for row, event in self._decoded(table, block):
                if table is TICK:
                    if self._cause is not None and self._is_beyond_a_gap(event):
                        return
                    self.last_tick_end = event.end
                yield row["seq"], event

    def _is_beyond_a_gap(self, tick: Tick) -> bool:
        """Of a damaged file: ticks before it are lost, so what is left of the run ends before them."""
        return self.last_tick_end is not None and tick.start > self.last_tick_end + TICK_SECONDS / 2

    def _decoded(self, table: EventTable, rows: Sequence[Row]) -> list[tuple[Row, Any]]:
        """Rows that make sense, with their events; when one of several does not, they are tried one by one."""
        try:
            self._check_types(table, rows)
            with _collector_paused():
                return list(zip(rows, table.codec.decode_all(rows), strict=True))
        except (ValueError, TypeError, KeyError) as error:
            if len(rows) > 1:
                return [pair for row in rows for pair in self._decoded(table, [row])]
            self._cause = self._cause or f"row {rows[0]['seq']} of table {table.name}: {error}"
            return []

    def _check_types(self, table: EventTable, rows: Sequence[Row]) -> None:
        """ValueError when a value cannot be its column's: SQLite does not notice all damage."""
        columns = {column.name: column for column in table.codec.columns}
        for row in rows:
            row_types: tuple[object, ...] = (table.name, *map(type, row.values()))
            if row_types not in self._seen_types:
                for name, value in row.items():
                    if name in columns and not columns[name].accepts(type(value)):
                        raise ValueError(f"{value!r:.40} is no {name}")
                self._seen_types.add(row_types)

    def _columns_of(self, table: str) -> frozenset[str]:
        if table not in self._columns:
            try:
                rows = self._connection.execute(f"PRAGMA table_info({table})").fetchall()
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                raise RecordingError(f"cannot read {self._path} ({error}): the file is damaged") from error
            self._columns[table] = frozenset(row[1] for row in rows)
        return self._columns[table]
