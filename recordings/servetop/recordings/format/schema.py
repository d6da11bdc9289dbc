"""Schema of the file, format 1: tables, indexes, views and signature (docs/reference/recording-format.md)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from servetop.recordings.format.merged_codec import ENGINE_SAMPLES, GPU_SAMPLES, REPLICA_SAMPLES, SERIES_SCRAPES
from servetop.recordings.format.request_codec import ENDED, REQUESTS
from servetop.recordings.format.row_codec import (
    COMMANDS,
    LOG_LINES,
    NOTES,
    REPLICA_CHANGES,
    REQUESTS_IN_FLIGHT,
    SKIPPED_CELLS,
    STAGES,
    EventCodec,
)
from servetop.recordings.format.search_codec import SEARCH_STATES
from servetop.recordings.format.tick_codec import TICKS
from servetop.recordings.format.views import add_views

APPLICATION_ID = 0x73767470
"""The bytes `svtp`, at offset 68 of the file."""
FORMAT_MAJOR = 1
"""Files of a higher major version are rejected."""
FORMAT_MINOR = 24
"""Incremented for a new column or table; readers ignore unknown ones."""
USER_VERSION = FORMAT_MAJOR * 1000 + FORMAT_MINOR
"""PRAGMA user_version, at offset 60 of the file."""


@dataclass(frozen=True, slots=True)
class EventTable:
    """A table of events, numbered by `seq` in the order in which they were written."""

    name: str
    codec: EventCodec[Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, except `seq`."""
        return tuple(column.name for column in self.codec.columns if column.name != "seq")

    @property
    def create(self) -> str:
        """The CREATE TABLE statement."""
        columns = [f"{each.name} {each.sql_type}" for each in self.codec.columns if each.name != "seq"]
        return f"CREATE TABLE {self.name} (seq INTEGER PRIMARY KEY, {', '.join(columns)})"

    @property
    def insert(self) -> str:
        """The INSERT statement for values from the codec."""
        return f"INSERT INTO {self.name} ({', '.join(self.names)}) VALUES ({', '.join('?' * len(self.names))})"


REQUEST = EventTable("request", REQUESTS)
TICK = EventTable("tick", TICKS)
ENGINE_SAMPLE = EventTable("engine_sample", ENGINE_SAMPLES)
REPLICA_SAMPLE = EventTable("replica_sample", REPLICA_SAMPLES)
REPLICA_CHANGE = EventTable("replica_change", REPLICA_CHANGES)
ENGINE_SERIES = EventTable("engine_series", SERIES_SCRAPES)
IN_FLIGHT = EventTable("in_flight", REQUESTS_IN_FLIGHT)
GPU_SAMPLE = EventTable("gpu_sample", GPU_SAMPLES)
STAGE = EventTable("stage", STAGES)
SKIPPED_CELL = EventTable("skipped_cell", SKIPPED_CELLS)
COMMAND = EventTable("command", COMMANDS)
NOTE = EventTable("note", NOTES)
LOG_LINE = EventTable("log_line", LOG_LINES)
SEARCH_STATE = EventTable("search_state", SEARCH_STATES)
EVENT_TABLES: Sequence[EventTable] = (
    REQUEST,
    IN_FLIGHT,
    TICK,
    ENGINE_SAMPLE,
    REPLICA_SAMPLE,
    REPLICA_CHANGE,
    ENGINE_SERIES,
    GPU_SAMPLE,
    STAGE,
    SKIPPED_CELL,
    COMMAND,
    NOTE,
    LOG_LINE,
    SEARCH_STATE,
)

FORGET_IN_FLIGHT = f"DELETE FROM {IN_FLIGHT.name}"
"""Before newer ones are inserted, and at the end of the run: the table has only the newest."""

RUN_COLUMNS = {
    "origin_ns": "INTEGER",
    "wall_epoch_s": "REAL",
    "config": "TEXT",
    "versions": "TEXT",
    "host": "TEXT",
    "engine": "TEXT",
    "pid": "INTEGER",
    "writer": "TEXT",
    "end_at": "REAL",
    "exit_code": "INTEGER",
    "end_reason": "TEXT",
    "steady": "TEXT",
    "headline": "TEXT",
    "manifest": "TEXT",
    "random_tokens": "TEXT",
    "tick_seconds": "REAL",
    "predicted": "INTEGER",
    "counted": "TEXT",
    "kept_from": "REAL",
}
"""Columns of table `run`: the header and the end, in one row.

`config` to `engine`, `writer`, `steady`, `manifest` and `counted` are JSON.
"""

TICK_TOTALS = ("number", "ok", "errors", "timeouts", "cancelled", "truncated", "output_tokens")
"""Columns that a list of recordings needs; an index contains them, so that the wide rows are not read."""

INDEXES = (
    f"CREATE INDEX request_by_end ON request ({ENDED}, sent)",
    "CREATE INDEX request_by_stage ON request (stage)",
    f"CREATE INDEX tick_totals ON tick ({', '.join(TICK_TOTALS)})",
)


def add_missing_columns(connection: sqlite3.Connection) -> None:
    """Upgrade a file of an older minor version to this one; missing required values become 0."""
    run = _columns_of(connection, "run")
    for name in [name for name in RUN_COLUMNS if name not in run]:
        connection.execute(f"ALTER TABLE run ADD COLUMN {name} {RUN_COLUMNS[name]}")
    for table in EVENT_TABLES:
        existing = _columns_of(connection, table.name)
        if not existing:
            connection.execute(table.create)
            continue
        for column in table.codec.columns:
            if column.name not in {*existing, "seq"}:
                default = " DEFAULT 0" if column.required else ""
                connection.execute(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {column.sql_type}{default}")
    add_views(connection)
    connection.execute(f"PRAGMA user_version = {max(USER_VERSION, _version_of(connection))}")


def _columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def _version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty file within the caller's transaction, and set its signature."""
    run = ", ".join(f"{name} {sql_type}" for name, sql_type in RUN_COLUMNS.items())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {USER_VERSION}")
    connection.execute(f"CREATE TABLE run (seq INTEGER PRIMARY KEY, {run})")
    for table in EVENT_TABLES:
        connection.execute(table.create)
    for statement in INDEXES:
        connection.execute(statement)
    add_views(connection)
