"""Reads rows and events from the tables of an open file, as far as they are intact."""

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
from servetop.recordings.format.column_bounds import sane
from servetop.recordings.format.reader_limits import ReadBudget
from servetop.recordings.format.row_codec import RowValues
from servetop.recordings.format.schema import TICK, EventTable
from servetop.recordings.format.tick_checks import TickChecks
from servetop.recordings.read.open import OpenedFile, in_short, is_damage

_BLOCK = 1000
"""Rows decoded together."""


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector: reading creates many objects and no cycles, and the search would double its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class TableReader:
    """Reads existing columns (older versions have fewer); damage ends a table early."""

    def __init__(self, opened: OpenedFile, path: Path) -> None:
        self._connection = opened.connection
        self._budget = ReadBudget(opened.connection, size=opened.size)
        self._path = path
        self._columns: dict[str, tuple[tuple[str, str], ...]] = {}
        self._cause = opened.damage
        self._seen_types: set[tuple[object, ...]] = set()
        self._tick_checks: TickChecks | None = None
        self._has_read_ticks = False
        self.last_tick_end: float | None = None
        """End of the last tick read so far; seconds."""

    @property
    def damage(self) -> str | None:
        """The damage found, and what could be read, in one line; None without damage."""
        if self._cause is None:
            return None
        words = f"{self._path} is damaged ({self._cause})"
        if not self._has_read_ticks:
            return words
        read = "no tick" if self.last_tick_end is None else f"the first {self.last_tick_end:.1f} s"
        return f"{words}: {read} could be read, what follows is lost"

    @property
    def cause(self) -> str | None:
        """The damage found, in a few words; None without damage."""
        return self._cause

    def blame(self, cause: str) -> None:
        """Record damage of the file; the first cause stays."""
        self._cause = self._cause or cause

    def data_version(self) -> int:
        """A number that changes whenever another connection commits."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read from one snapshot of the writer's transactions."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.DatabaseError):  # a damaged file makes even that fail, harmlessly
                self._connection.execute("ROLLBACK")

    def rows(
        self, table: str, columns: Sequence[str], *, where: str = "", parameters: Sequence[Any] = (), order: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """Stream rows; ends early at damage. RecordingError if the disk fails or the file is locked."""
        condition = f" WHERE {where}" if where else ""
        ordered = f" ORDER BY {order}" if order else ""
        statement = f"SELECT {', '.join(columns)} FROM {table}{condition}{ordered}"
        try:
            most = self._budget.renew()
            cursor = self._connection.execute(statement, tuple(parameters))
            yield from itertools.islice(cursor, most)
            if cursor.fetchone() is not None:
                self.blame(f"table {table} has more rows than the file has room for")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise RecordingError(f"cannot read {self._path} ({error}): is the disk all right?") from error
            self.blame(in_short(error))

    def or_null(self, table: str, columns: Sequence[str]) -> list[str]:
        """Columns and expressions as an SQL selection, with NULL for columns that this file lacks."""
        there = dict(self.columns_of(table))
        return ["NULL" if name.isidentifier() and name not in there else name for name in columns]

    def row_dicts(
        self, table: str, columns: Sequence[str], *, where: str = "", parameters: Sequence[Any] = (), order: str = ""
    ) -> Iterator[dict[str, Any]]:
        """Rows by column name, without columns that this file lacks."""
        there = dict(self.columns_of(table))
        known = [name for name in columns if name in there]
        if known:
            for row in self.rows(table, known, where=where, parameters=parameters, order=order):
                yield dict(zip(known, row, strict=True))

    def events(
        self, table: EventTable, *, where: str = "", parameters: Sequence[Any] = (), order: str = "seq"
    ) -> list[Any]:
        """Events in order of `order`; an invalid row is left out and recorded as damage."""
        return [event for _, event in self.numbered_events(table, where=where, parameters=parameters, order=order)]

    def numbered_events(
        self, table: EventTable, *, where: str = "", parameters: Sequence[Any] = (), order: str = "seq"
    ) -> list[tuple[int, Any]]:
        """Events with their numbers (`seq`)."""
        with _collector_paused():
            return list(self._numbered(table, where=where, parameters=parameters, order=order))

    def events_after(self, table: EventTable, seq: int, *, most: int | None = None) -> tuple[list[Any], int]:
        """At most `most` events written after number `seq`, and the number of the last one."""
        order = "seq" if most is None else f"seq LIMIT {most:d}"
        numbered = self.numbered_events(table, where="seq > ?", parameters=(seq,), order=order)
        return [event for _, event in numbered], numbered[-1][0] if numbered else seq

    def past_ticks(self, first: int, last: int) -> list[Tick]:
        """Ticks by index, both included, without changing the position of the last read tick."""
        read_until = self.last_tick_end
        try:
            return self.events(TICK, where="number BETWEEN ? AND ?", parameters=(first, last), order="number")
        finally:
            self.last_tick_end = read_until

    def columns_of(self, table: str) -> tuple[tuple[str, str], ...]:
        """(name, declared type) of each column, in the file's order; empty for a missing table."""
        if table not in self._columns:
            try:
                rows = self._connection.execute(f"PRAGMA table_info({table})").fetchall()
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                raise RecordingError(f"cannot read {self._path} ({error}): the file is damaged") from error
            self._columns[table] = tuple((str(row[1]), str(row[2])) for row in rows)
        return self._columns[table]

    def quick_check(self, tables: Sequence[str]) -> None:
        """Let SQLite check the pages of tables; its first finding is recorded as damage."""
        for table in tables:
            if self.columns_of(table):
                found = next((str(row[0]) for row in self._pragma(f"quick_check({table})")), "ok")
                if found != "ok":
                    self.blame(f"table {table}: {' '.join(found.split())}")

    def integrity_check(self) -> None:
        """Let SQLite check the whole file, including unreachable pages and all index entries."""
        found = next((str(row[0]) for row in self._pragma("integrity_check(1)")), "ok")
        if found != "ok":
            self.blame(" ".join(found.removeprefix("*** in database main ***").split()))

    def _pragma(self, pragma: str) -> Iterator[tuple[Any, ...]]:
        try:
            self._budget.renew()
            yield from self._connection.execute(f"PRAGMA {pragma}")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            self.blame(in_short(error))

    def _numbered(
        self, table: EventTable, *, where: str, parameters: Sequence[Any], order: str
    ) -> Iterator[tuple[int, Any]]:
        self._has_read_ticks = self._has_read_ticks or table is TICK
        names, checked = self._selected(table)
        if "seq" not in names:
            return
        found = self.rows(table.name, [*names, checked], where=where, parameters=parameters, order=order)
        newest = 0
        while block := list(itertools.islice(found, _BLOCK)):
            if order.split()[0] == "seq":
                block, newest = self._ascending(block, newest, names.index("seq"))
            for row, event in self._decoded(table, names, block):
                if table is TICK:
                    if self._cause is not None and self._is_beyond_a_gap(event):
                        return
                    self.last_tick_end = event.end
                yield row["seq"], event

    def _selected(self, table: EventTable) -> tuple[list[str], str]:
        """Names of the columns to read, and the condition for valid numbers.

        All columns of ticks are read, in the file's order: their checksum covers those of a newer version too.
        """
        there = dict(self.columns_of(table.name))
        condition = sane([column for column in table.codec.columns if column.name in there])
        if table is TICK:
            return list(there), condition
        return [name for name in ("seq", *table.names) if name in there], condition

    def _ascending(self, rows: list[tuple[Any, ...]], newest: int, at: int) -> tuple[list[tuple[Any, ...]], int]:
        """Rows up to the first whose `seq` does not ascend: a damaged B-tree can lead to the same page twice."""
        for count, row in enumerate(rows):
            if type(row[at]) is not int or row[at] <= newest:
                self.blame("its rows are not in their order")
                return rows[:count], 1 << 63
            newest = row[at]
        return rows, newest

    def _is_beyond_a_gap(self, tick: Tick) -> bool:
        """Whether ticks before this one are lost: the readable part of a damaged run ends there."""
        return self.last_tick_end is not None and tick.start > self.last_tick_end + TICK_SECONDS / 2

    def _decoded(
        self, table: EventTable, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> list[tuple[RowValues, Any]]:
        """Valid rows with their events; if one of several is invalid, they are decoded one by one."""
        try:
            self._check(table, names, rows)
            dicts = [dict(zip(names, row, strict=False)) for row in rows]
            return list(zip(dicts, table.codec.decode_all(dicts), strict=True))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            if len(rows) > 1:
                return [pair for row in rows for pair in self._decoded(table, names, [row])]
            self.blame(f"row {rows[0][names.index('seq')]} of table {table.name}: {error}")
            return []

    def _check(self, table: EventTable, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Raise ValueError if a value is invalid in its column, or a tick was altered."""
        columns = {column.name: column for column in table.codec.columns}
        for row in rows:
            row_types: tuple[object, ...] = (table.name, *map(type, row))
            if row_types not in self._seen_types:
                for name, value in zip(names, row, strict=False):
                    if name in columns and not columns[name].accepts(type(value)):
                        raise ValueError(f"{value!r:.40} is no {name}")
                self._seen_types.add(row_types)
            if row[-1] != 1:
                raise ValueError("its numbers are invalid")
        if table is TICK:
            self._tick_checks = self._tick_checks or TickChecks(self.columns_of(TICK.name))
            self._tick_checks.check(rows)
