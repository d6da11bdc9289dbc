"""Reads the intact rows and events from the tables of an open file."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sqlite3
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

from servetop.core.errors import RecordingError
from servetop.core.merged.tick_rows import TickRow, TickRows, first_index
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.recordings.format.column_bounds import MOST_MERGED, valid_row_condition
from servetop.recordings.format.merged_codec import MERGED
from servetop.recordings.format.reader_limits import ReadBudget
from servetop.recordings.format.row_codec import RowBlock
from servetop.recordings.format.schema import TICK, EventTable
from servetop.recordings.format.tick_checksum import TickChecks
from servetop.recordings.read.merged_rows import MergedRows
from servetop.recordings.read.open import OpenedFile, is_damage, short_message

_BLOCK = 1000
"""Number of rows decoded together."""


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector, which would double the time of reading: it creates many objects and no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _undecoded(rows: RowBlock) -> Sequence[None]:
    """Return nothing for each row, where only its values are wanted."""
    return (None,) * len(rows)


class TableReader:
    """Reads the columns that the file has (older versions have fewer); damage ends a table early."""

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
        """End of the last tick read so far, in seconds."""

    @property
    def damage(self) -> str | None:
        """One line on the damage found, and how much could be read; None without damage."""
        if self._cause is None:
            return None
        message = f"{self._path} is damaged ({self._cause})"
        if not self._has_read_ticks:
            return message
        readable = "no tick" if self.last_tick_end is None else f"the first {self.last_tick_end:.1f} s"
        return f"{message}: {readable} could be read, the rest is lost"

    @property
    def cause(self) -> str | None:
        """The first damage found; None without damage."""
        return self._cause

    def record_damage(self, cause: str) -> None:
        """Record damage of the file; only the first cause is kept."""
        self._cause = self._cause or cause

    def data_version(self) -> int:
        """Return a number that changes whenever another connection commits."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read from a single snapshot of the writer's transactions."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.DatabaseError):  # fails harmlessly for a damaged file
                self._connection.execute("ROLLBACK")

    def rows(
        self, table: str, columns: Sequence[str], *, where: str = "", parameters: Sequence[Any] = (), order: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """Stream rows, up to damage; RecordingError if the disk fails or the file is locked."""
        condition = f" WHERE {where}" if where else ""
        ordered = f" ORDER BY {order}" if order else ""
        statement = f"SELECT {', '.join(columns)} FROM {table}{condition}{ordered}"
        try:
            max_rows = self._budget.renew()
            cursor = self._connection.execute(statement, tuple(parameters))
            yield from itertools.islice(cursor, max_rows)
            if cursor.fetchone() is not None:
                self.record_damage(f"table {table} has more rows than fit into the file")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise RecordingError(f"cannot read {self._path} ({error}): check the disk") from error
            self.record_damage(short_message(error))

    def or_null(self, table: str, columns: Sequence[str]) -> list[str]:
        """Return columns and expressions for a SELECT, with NULL for columns that this file lacks."""
        existing = dict(self.columns_of(table))
        return ["NULL" if name.isidentifier() and name not in existing else name for name in columns]

    def row_dicts(
        self, table: str, columns: Sequence[str], *, where: str = "", parameters: Sequence[Any] = (), order: str = ""
    ) -> Iterator[dict[str, Any]]:
        """Yield rows by column name, without columns that this file lacks."""
        existing = dict(self.columns_of(table))
        known = [name for name in columns if name in existing]
        if known:
            for row in self.rows(table, known, where=where, parameters=parameters, order=order):
                yield dict(zip(known, row, strict=True))

    def events(
        self, table: EventTable, *, where: str = "", parameters: Sequence[Any] = (), order: str = "seq"
    ) -> list[Any]:
        """Return events in this order; an invalid row is omitted and recorded as damage."""
        return [event for _, event in self.numbered_events(table, where=where, parameters=parameters, order=order)]

    def stored(self, table: EventTable) -> list[Any]:
        """Return what each row stands for in order, without making the events of a row that stands for several."""
        with collector_paused():
            return [event for _, event in self._numbered(table, where="", parameters=(), order="seq", stored=True)]

    def numbered_events(
        self, table: EventTable, *, where: str = "", parameters: Sequence[Any] = (), order: str = "seq"
    ) -> list[tuple[int, Any]]:
        """Return events with their numbers (`seq`)."""
        with collector_paused():
            return list(self._numbered(table, where=where, parameters=parameters, order=order))

    def streamed(self, table: EventTable, *, where: str = "", parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield events in the order of writing, with at most a thousand in memory; of a merged tick the row."""
        return (event for _, event in self._numbered(table, where=where, parameters=parameters, order="seq"))

    def valid_blocks(self, table: EventTable) -> Iterator[RowBlock]:
        """Yield the rows of a table of numbers in the order of writing, in blocks; an invalid one is omitted."""
        names, checked = self._selected(table)
        if "seq" not in names:
            return
        if missing := [each.name for each in table.codec.columns if each.required and each.name not in names]:
            self.record_damage(f"table {table.name} has no column {missing[0]}")
            return
        rows, newest, seq = self.rows(table.name, [*names, checked], order="seq"), 0, names.index("seq")
        while block := list(itertools.islice(rows, _BLOCK)):
            block, newest = self._ascending(block, newest, seq)
            yield RowBlock(names, [row for row, _ in self._decoded(table, names, block, decode=_undecoded)])

    def events_after(self, table: EventTable, seq: int, *, most: int | None = None) -> tuple[list[Any], int]:
        """Return at most `most` events after number `seq`, and the number of the last one."""
        order = "seq" if most is None else f"seq LIMIT {most:d}"
        numbered = self.numbered_events(table, where="seq > ?", parameters=(seq,), order=order)
        return [event for _, event in numbered], numbered[-1][0] if numbered else seq

    def past_ticks(self, first: int, last: int) -> list[Tick]:
        """Return the ticks with indexes `first` to `last`, inclusive, without changing `last_tick_end`."""
        read_until = self.last_tick_end
        try:
            rows = (first, last + MOST_MERGED)  # a row that stands for several ticks has the number of the last
            ticks = self.events(TICK, where="number BETWEEN ? AND ?", parameters=rows, order="number")
            return [tick for tick in TickRows(ticks) if first <= tick.index <= last]
        finally:
            self.last_tick_end = read_until

    def columns_of(self, table: str) -> tuple[tuple[str, str], ...]:
        """Return name and declared type of each column, in the file's order; empty for a missing table."""
        if table not in self._columns:
            try:
                rows = self._connection.execute(f"PRAGMA table_info({table})").fetchall()
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                raise RecordingError(f"cannot read {self._path} ({error}): the file is damaged") from error
            self._columns[table] = tuple((str(row[1]), str(row[2])) for row in rows)
        return self._columns[table]

    def quick_check(self, tables: Sequence[str]) -> None:
        """Run SQLite's quick check of the tables' pages; its first finding is recorded as damage."""
        for table in tables:
            if self.columns_of(table):
                finding = next((str(row[0]) for row in self._pragma(f"quick_check({table})")), "ok")
                if finding != "ok":
                    self.record_damage(f"table {table}: {' '.join(finding.split())}")

    def integrity_check(self) -> None:
        """Run SQLite's check of the whole file, including unreachable pages and all index entries."""
        finding = next((str(row[0]) for row in self._pragma("integrity_check(1)")), "ok")
        if finding != "ok":
            self.record_damage(" ".join(finding.removeprefix("*** in database main ***").split()))

    def _pragma(self, pragma: str) -> Iterator[tuple[Any, ...]]:
        try:
            self._budget.renew()
            yield from self._connection.execute(f"PRAGMA {pragma}")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            self.record_damage(short_message(error))

    def _numbered(
        self, table: EventTable, *, where: str, parameters: Sequence[Any], order: str, stored: bool = False
    ) -> Iterator[tuple[int, Any]]:
        self._has_read_ticks = self._has_read_ticks or table is TICK
        names, checked = self._selected(table)
        if "seq" not in names:
            return
        rows = self.rows(table.name, [*names, checked], where=where, parameters=parameters, order=order)
        newest, merges, seq = 0, MERGED in names, names.index("seq")
        merged = MergedRows(names, lambda seq, key: self._event_before(table, seq, key))
        while block := list(itertools.islice(rows, _BLOCK)):
            if order.split()[0] == "seq":
                block, newest = self._ascending(block, newest, seq)
            for row, last in self._decoded(table, names, block):
                found = merged.read(row, last, stored=stored) if merges else (last,)
                for event in found:
                    if table is TICK:
                        if self._cause is not None and self._is_beyond_a_gap(event):
                            return
                        self.last_tick_end = (last.client.index + 1) * TICK_SECONDS
                    yield row[seq], event

    def _event_before(self, table: EventTable, seq: int, key: Hashable) -> Any:
        """Return the event of the row before number `seq`, of the same server or device; None if there is none."""
        names, checked = self._selected(table)
        keys = [name for name in ("replica", "device") if name in names and key is not None]
        where = " AND ".join(("seq < ?", *(f"{name} = ?" for name in keys)))
        parameters = (seq, *(key for _ in keys))
        rows = self.rows(table.name, [*names, checked], where=where, parameters=parameters, order="seq DESC LIMIT 1")
        return next((event for _, event in self._decoded(table, names, list(rows))), None)

    def _selected(self, table: EventTable) -> tuple[list[str], str]:
        """Return the names of the columns to read, and the condition for valid numbers.

        All columns of ticks are read, in the file's order, because the checksum also covers those of newer versions.
        """
        existing = dict(self.columns_of(table.name))
        condition = valid_row_condition([column for column in table.codec.columns if column.name in existing])
        if table is TICK:
            return list(existing), condition
        return [name for name in ("seq", *table.names) if name in existing], condition

    def _ascending(self, rows: list[tuple[Any, ...]], newest: int, at: int) -> tuple[list[tuple[Any, ...]], int]:
        """Return the rows up to the first whose `seq` does not ascend: a damaged B-tree may contain a page twice."""
        for count, row in enumerate(rows):
            if type(row[at]) is not int or row[at] <= newest:
                self.record_damage("its rows are out of order")
                return rows[:count], 1 << 63
            newest = row[at]
        return rows, newest

    def _is_beyond_a_gap(self, row: TickRow) -> bool:
        """Whether ticks before this row are lost, where the readable part of a damaged run ends."""
        start = first_index(row) * TICK_SECONDS
        return self.last_tick_end is not None and start > self.last_tick_end + TICK_SECONDS / 2

    def _decoded(
        self,
        table: EventTable,
        names: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
        *,
        decode: Callable[[RowBlock], Sequence[Any]] | None = None,
    ) -> list[tuple[tuple[Any, ...], Any]]:
        """Return valid rows with their events; if one of several is invalid, they are decoded one by one."""
        try:
            self._check(table, names, rows)
            return list(zip(rows, (decode or table.codec.decode_all)(RowBlock(names, rows)), strict=True))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            if len(rows) > 1:
                return [pair for row in rows for pair in self._decoded(table, names, [row], decode=decode)]
            self.record_damage(f"row {rows[0][names.index('seq')]} of table {table.name}: {error}")
            return []

    def _check(self, table: EventTable, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Raise ValueError if a value is invalid for its column, or a tick was altered."""
        columns = {column.name: column for column in table.codec.columns}
        for row in rows:
            row_types: tuple[object, ...] = (table.name, *map(type, row))
            if row_types not in self._seen_types:
                for name, value in zip(names, row, strict=False):
                    if name in columns and not columns[name].accepts(type(value)):
                        raise ValueError(f"invalid {name} {value!r:.40}")
                self._seen_types.add(row_types)
            if row[-1] != 1:
                raise ValueError("its numbers are invalid")
        if table is TICK:
            self._tick_checks = self._tick_checks or TickChecks(self.columns_of(TICK.name))
            self._tick_checks.check(rows)
