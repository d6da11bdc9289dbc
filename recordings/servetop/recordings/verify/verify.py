"""Verifies a recording: header, pages, ticks, requests, other rows, write-ahead log and end."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from servetop.core.errors import NotARecordingError, RecordingError
from servetop.core.merged.tick_rows import first_index, ticks_in
from servetop.core.tick import COUNTED_AS, TICK_SECONDS
from servetop.recordings.format.schema import (
    COMMAND,
    ENGINE_SAMPLE,
    ENGINE_SERIES,
    EVENT_TABLES,
    GPU_SAMPLE,
    LOG_LINE,
    NOTE,
    REPLICA_CHANGE,
    REPLICA_SAMPLE,
    SKIPPED_CELL,
    STAGE,
    TICK,
    EventTable,
)
from servetop.recordings.format.tick_checksum import CHECKSUM
from servetop.recordings.read.damage import check_request_rows, cut_page
from servetop.recordings.read.open import OpenedFile, open_for_reading
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.table_reader import TableReader
from servetop.recordings.read.wal_check import check_wal
from servetop.recordings.verify.verdict import Verified, VerifyCheck, VerifyVerdict

_OTHERS: Sequence[EventTable] = (
    STAGE,
    SKIPPED_CELL,
    NOTE,
    COMMAND,
    LOG_LINE,
    ENGINE_SAMPLE,
    REPLICA_SAMPLE,
    REPLICA_CHANGE,
    ENGINE_SERIES,
    GPU_SAMPLE,
)


def verify(path: Path) -> Verified:
    """Verify everything in a file."""
    try:
        opened = open_for_reading(path)
    except RecordingError as error:
        verdict = VerifyVerdict.NOT_A_RECORDING if isinstance(error, NotARecordingError) else VerifyVerdict.NOT_SOUND
        return Verified(verdict, [VerifyCheck(name="file", sound=False, detail=str(error))])
    try:
        reader = RecordingReader(opened, path)
        opened.connection.execute("BEGIN")  # a consistent snapshot of ticks and requests, even during a run
        checks = list(_checks(reader, opened, path))
    except RecordingError as error:
        checks = [VerifyCheck(name="header", sound=False, detail=str(error))]
    finally:
        _release(opened)
    return Verified(VerifyVerdict.SOUND if all(each.sound for each in checks) else VerifyVerdict.NOT_SOUND, checks)


def _release(opened: OpenedFile) -> None:
    opened.connection.close()
    if opened.scratch is not None:
        shutil.rmtree(opened.scratch, ignore_errors=True)


def _checks(reader: RecordingReader, opened: OpenedFile, path: Path) -> Iterator[VerifyCheck]:
    version = opened.connection.execute("PRAGMA user_version").fetchone()[0]
    written_by = reader.header.versions.get("servetop", "an unknown version")
    yield VerifyCheck(
        name="header", sound=True, detail=f"format {version // 1000}.{version % 1000}, servetop {written_by}"
    )

    def check(name: str, inspect: Callable[[TableReader], str]) -> VerifyCheck:
        tables = TableReader(replace(opened, damage=None), path)
        try:
            detail = inspect(tables)
        except RecordingError as error:
            return VerifyCheck(name=name, sound=False, detail=str(error))
        return VerifyCheck(name=name, sound=tables.cause is None, detail=tables.cause or detail)

    damage = opened.damage or (None if reader.is_live() else cut_page(path))
    yield VerifyCheck(name="pages", sound=False, detail=damage) if damage else check("pages", _pages)
    yield check("ticks", _ticks)
    yield check("requests", _requests)
    yield check("other rows", _other_rows)
    yield _log(path, live=reader.is_live())
    yield _end(reader)


def _pages(tables: TableReader) -> str:
    tables.quick_check(["run", *(table.name for table in EVENT_TABLES)])
    if tables.cause is None:
        tables.integrity_check()
    return "SQLite found no errors"


def _ticks(tables: TableReader) -> str:
    first = following = None
    count = 0
    for row in tables.streamed(TICK):
        if following is not None and first_index(row) != following:
            tables.record_damage(f"ticks are missing or out of order after second {following * TICK_SECONDS:.2f}")
        first, count = first_index(row) if first is None else first, count + ticks_in(row)
        following = first_index(row) + ticks_in(row)
    kept_from = next((row.get("kept_from") for row in tables.row_dicts("run", ("kept_from",))), None) or 0.0
    if first is not None and first * TICK_SECONDS != kept_from:
        tables.record_damage(f"the ticks before second {first * TICK_SECONDS:.2f} are missing")
    unchecked = count
    if CHECKSUM in dict(tables.columns_of(TICK.name)):
        (unchecked,) = next(tables.rows(TICK.name, ("count(*)",), where=f"{CHECKSUM} IS NULL"), (0,))
    detail = f"{count:,} without a gap, {count * TICK_SECONDS:.1f} s"
    suffix = f"{unchecked:,} of an older version have no checksum" if unchecked else "checksums match"
    return f"{detail}; {suffix}"


def _requests(tables: TableReader) -> str:
    """Compare the rows with the counters of the ticks, which were written in the same transactions."""
    check_request_rows(tables)
    deque(tables.rows("request", tuple(dict(tables.columns_of("request")))), maxlen=0)  # decodes all texts
    rows = dict(tables.rows("request GROUP BY status", ("status", "count(*)")))
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in COUNTED_AS.values())
    counted = next(tables.rows(TICK.name, (sums,)), (0,) * len(COUNTED_AS))
    for status, ticks in zip(COUNTED_AS, counted, strict=True):
        if rows.get(status, 0) != ticks:
            tables.record_damage(f"{rows.get(status, 0):,} rows have status {status}, but the ticks count {ticks:,}")
    return f"{sum(rows.values()):,}, matching the counts of the ticks"


def _other_rows(tables: TableReader) -> str:
    counts = {table.name: len(tables.stored(table)) for table in _OTHERS}
    return ", ".join(f"{count:,} of {name}" for name, count in counts.items() if count) or "none"


def _log(path: Path, *, live: bool) -> VerifyCheck:
    try:
        state = check_wal(path)
    except OSError as error:
        return VerifyCheck(name="log", sound=False, detail=f"the write-ahead log cannot be read ({error.strerror})")
    if state.damage is not None and not live:
        return VerifyCheck(name="log", sound=False, detail=state.damage)
    detail = f"{state.commits:,} commits in the write-ahead log" if state.commits else "no write-ahead log is needed"
    return VerifyCheck(name="log", sound=True, detail=detail)


def _end(reader: RecordingReader) -> VerifyCheck:
    if reader.damage is not None:
        return VerifyCheck(name="end", sound=False, detail=reader.damage)
    if reader.end is None:
        detail = "still being written" if reader.is_live() else "none: the run was killed or lost its disk"
        return VerifyCheck(name="end", sound=True, detail=detail)
    detail = f"after {reader.end.at:.1f} s, exit code {reader.end.exit_code}"
    detail += f": {reader.end.reason}" if reader.end.reason else ""
    return VerifyCheck(name="end", sound=True, detail=detail)
