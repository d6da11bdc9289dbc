"""Keeps the recording of a long watch small: merges what is older than an hour, and drops what is older still.

Each step is one transaction on the rows of ten seconds at most, so that none delays a tick; the pages that become free
take the rows that follow. A process that is killed leaves a step undone, and none half done.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sqlite3
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from servetop.core.merged.merged_sample import MERGED_SECONDS
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.format.tick_checksum import CHECKSUM, TickChecksum
from servetop.recordings.write.merge_rows import Row, merged_devices, merged_samples, merged_series, merged_ticks

FULL_SECONDS = 3600.0
"""Age up to which every tick and sample is kept."""
_TICKS = round(MERGED_SECONDS / TICK_SECONDS)
_MOST_ROWS = 2000
"""Rows of a table that one step reads at most: 50 servers that are read four times a second."""
_MOST_DROPPED = 400
_EVENTS = ("note", "command", "log_line")
"""Tables whose rows are dropped by their time, but never merged."""


@dataclass(frozen=True, slots=True)
class _SampleTable:
    name: str
    time: str
    """The column with the time of a sample."""
    key: str | None
    """The column with the server or device; None if all rows are of one."""
    merge: Callable[[Sequence[Row], Row | None], dict[str, Any] | None]


_TABLES = (
    _SampleTable("engine_sample", "scrape_end", None, merged_samples),
    _SampleTable("replica_sample", "scrape_end", "replica", merged_samples),
    _SampleTable("gpu_sample", "at", "device", lambda rows, _: merged_devices(rows)),
    _SampleTable(
        "engine_series",
        "at",
        "replica",
        lambda rows, before: merged_series(rows, None if before is None else before["names"]),
    ),
)


class Downsampling:
    """Merges and drops rows of a file that is open for writing; `keep` is in seconds, None for everything."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        checksum: TickChecksum,
        keep: float | None = None,
        full: float = FULL_SECONDS,
    ) -> None:
        self._connection, self._checksum, self._keep, self._full = connection, checksum, keep, full
        self._next = 0
        """The next ten seconds to merge, counted from the origin."""
        self._read: dict[str, int] = {}
        self._before: dict[tuple[str, Hashable], Row] = {}
        self._kept_from = 0.0

    def step(self, now: float) -> bool:
        """Merge ten seconds, or drop some rows, if any are old enough at `now`; whether something was done.

        A disk error undoes the step, which is tried again by the next call.
        """
        end = (self._next + 1) * MERGED_SECONDS
        oldest = None if self._keep is None else math.floor((now - self._keep) / MERGED_SECONDS) * MERGED_SECONDS
        if oldest is not None and oldest > self._kept_from:
            return self._transaction(lambda: self._drop(oldest))
        if end + self._full <= now:
            return self._transaction(lambda: self._merge(end))
        return False

    def _transaction(self, change: Callable[[], Callable[[], None]]) -> bool:
        """Apply a change in one transaction, and remember it once it is on disk."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            remember = change()
            self._connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.ProgrammingError):
                raise
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            return False
        remember()
        return True

    def _merge(self, end: float) -> Callable[[], None]:
        first = self._next * _TICKS
        rows = self._rows("tick", "number BETWEEN ? AND ? ORDER BY number", (first, first + _TICKS - 1))
        read, before = dict(self._read), dict(self._before)
        merged = merged_ticks(rows, before.get(("tick", None)))
        if merged is not None:
            merged[CHECKSUM] = self._checksum.of([merged.get(name) for name in self._checksum.names])
            self._replace("tick", rows, merged)
            self._connection.execute("UPDATE run SET tick_seconds = ?", (MERGED_SECONDS,))
        if rows:
            before["tick", None] = rows[-1]
        for table in _TABLES:
            self._merge_samples(table, end, read, before)
        number = self._next + 1

        def remember() -> None:
            self._next, self._read, self._before = number, read, before

        return remember

    def _merge_samples(
        self, table: _SampleTable, end: float, read: dict[str, int], before: dict[tuple[str, Hashable], Row]
    ) -> None:
        """Merge the samples of each server or device up to a time."""
        where = f"seq > ? ORDER BY seq LIMIT {_MOST_ROWS}"
        rows = self._rows(table.name, where, (read.get(table.name, 0),), until=lambda row: row[table.time] > end)
        by_key: dict[Hashable, list[Row]] = {}
        for row in rows:
            by_key.setdefault(row[table.key] if table.key else None, []).append(row)
        for key, of_one in by_key.items():
            merged = table.merge(of_one, before.get((table.name, key)))
            if merged is not None:
                self._replace(table.name, of_one, merged)
            before[table.name, key] = _carried(of_one, before.get((table.name, key)))
        if rows:
            read[table.name] = rows[-1]["seq"]

    def _rows(
        self, table: str, where: str, parameters: Sequence[Any], *, until: Callable[[Row], bool] = lambda _: False
    ) -> list[Row]:
        """Return rows up to the first one that is `until`; those after it, such as those of an hour, are not read."""
        with contextlib.closing(self._connection.execute(f"SELECT * FROM {table} WHERE {where}", parameters)) as cursor:
            names = [each[0] for each in cursor.description]
            rows = (dict(zip(names, row, strict=True)) for row in cursor)
            return list(itertools.takewhile(lambda row: not until(row), rows))

    def _replace(self, table: str, rows: Sequence[Row], merged: Row) -> None:
        """Delete rows except the last one, which becomes the merged one."""
        self._connection.executemany(f"DELETE FROM {table} WHERE seq = ?", [(row["seq"],) for row in rows[:-1]])
        changed = {name: value for name, value in merged.items() if value != rows[-1][name]}
        setters = ", ".join(f"{name} = ?" for name in changed)
        self._connection.execute(f"UPDATE {table} SET {setters} WHERE seq = ?", [*changed.values(), merged["seq"]])

    def _drop(self, oldest: float) -> Callable[[], None]:
        """Delete some of the rows before a time; the file says from when on it is complete."""
        more = self._drop_ticks(oldest)
        for table in _TABLES:
            more |= self._drop_samples(table, oldest)
        for name in _EVENTS:
            self._connection.execute(f"DELETE FROM {name} WHERE at < ?", (oldest,))

        def remember() -> None:
            if not more:
                self._kept_from = oldest
                self._next = max(self._next, round(oldest / MERGED_SECONDS))

        return remember

    def _drop_ticks(self, oldest: float) -> bool:
        """Delete ticks; whether there may be more."""
        stop = round(oldest / TICK_SECONDS)
        where = f"number < ? ORDER BY number LIMIT {_MOST_DROPPED}"
        found = self._connection.execute(f"SELECT seq, number FROM tick WHERE {where}", (stop,)).fetchall()
        if found:
            self._connection.executemany("DELETE FROM tick WHERE seq = ?", [(seq,) for seq, _ in found])
            self._connection.execute("UPDATE run SET kept_from = ?", ((found[-1][1] + 1) * TICK_SECONDS,))
        return len(found) == _MOST_DROPPED

    def _drop_samples(self, table: _SampleTable, oldest: float) -> bool:
        """Delete samples, and hand the names of series on to the next row of the server; whether there may be more."""
        rows = self._rows(
            table.name,
            f"{table.time} < ? AND seq <= (SELECT seq FROM (SELECT seq FROM {table.name}"
            f" ORDER BY seq LIMIT {_MOST_DROPPED}) ORDER BY seq DESC LIMIT 1) ORDER BY seq",
            (oldest,),
        )
        self._connection.executemany(f"DELETE FROM {table.name} WHERE seq = ?", [(row["seq"],) for row in rows])
        names = {row["replica"]: row["names"] for row in rows if row.get("names") is not None}
        for replica, text in names.items():
            self._connection.execute(
                "UPDATE engine_series SET names = ? WHERE names IS NULL AND seq ="
                " (SELECT seq FROM engine_series WHERE replica IS ? ORDER BY seq LIMIT 1)",
                (text, replica),
            )
        return len(rows) == _MOST_DROPPED


def _carried(rows: Sequence[Row], before: Row | None) -> Row:
    """Return the last row, of a scrape of series with the names in force."""
    if "names" not in rows[-1]:
        return rows[-1]
    given = [row["names"] for row in ((before,) if before else ()) + tuple(rows) if row["names"] is not None]
    return {**rows[-1], "names": given[-1] if given else None}
