"""The one writer of a recording: a transaction each tick, and a queue in memory while the disk refuses."""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from servetop.core.errors import RecordingError
from servetop.core.events import Command, Note, RunEnd, Severity
from servetop.core.known_secrets import redactor_of
from servetop.core.redaction import Redactor
from servetop.core.source import EngineFacts, RunHeader
from servetop.core.steady import SteadyWindow
from servetop.recordings import schema
from servetop.recordings.batch import Batch, EncodedBatch, encode_batch
from servetop.recordings.codec import COMMANDS
from servetop.recordings.header import encode_engine, encode_header
from servetop.recordings.liveness import Writer
from servetop.recordings.opening import fold_wal
from servetop.recordings.steady_codec import encode_windows

BUSY_SECONDS = 0.25
"""How long a commit waits for a viewer that is writing a command; then it is tried again at the next one."""
MAX_WAITING_ROWS = 100_000
"""Rows kept in memory while the disk refuses them; beyond it the oldest batches are dropped, and counted."""

_END = "UPDATE run SET end_at = ?, exit_code = ?, end_reason = ?, steady = ?"


class Recorder:
    """Writes a run to its file. A disk that is full never stops the run: see `trouble`."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, redactor: Redactor) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = connection
        self._redactor = redactor
        self._waiting: deque[EncodedBatch] = deque()
        self._failure: str | None = None
        self._dropped_ticks = self._dropped_requests = 0
        self._last_command = 0
        self._last_time = 0.0

    @classmethod
    def create(cls, path: Path, header: RunHeader) -> Recorder:
        """Start a new file (and its folder) with the run's header; RecordingError if there is one, or it cannot be."""
        redactor = redactor_of(header.config)
        _claim(path)
        try:
            connection = connect_for_writing(path)
            try:
                connection.execute("BEGIN")  # tables and header at once: no reader sees a recording without a header
                schema.create_tables(connection)
                columns = encode_header(header, writer=Writer.this_process(), redactor=redactor)
                marks = ", ".join("?" * len(columns))
                connection.execute(f"INSERT INTO run ({', '.join(columns)}) VALUES ({marks})", [*columns.values()])
                connection.execute("COMMIT")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
            except sqlite3.Error:
                connection.close()
                raise
        except sqlite3.Error as error:
            path.unlink(missing_ok=True)
            raise RecordingError(
                f"cannot record to {path} ({error}): free some space, or choose another file with --record"
            ) from error
        return cls(connection, path, redactor=redactor)

    @property
    def trouble(self) -> str | None:
        """One line while something is not on disk, and for good once something was dropped; None when all is well."""
        if self._failure is None and not self._dropped:
            return None
        parts = [f"{self.path.name}: "]
        if self._failure is not None:
            parts.append(f"cannot be written ({self._failure}), {self._waiting_words()} kept in memory")
        if self._dropped:
            parts.append(f"{'; ' if self._failure else ''}{self._dropped} were dropped")
        return "".join(parts)

    def _waiting_words(self) -> str:
        ticks, requests = (sum(getattr(each, name) for each in self._waiting) for name in ("ticks", "requests"))
        return f"{ticks} ticks and {requests} requests"

    @property
    def _dropped(self) -> str:
        if not (self._dropped_ticks or self._dropped_requests):
            return ""
        return f"{self._dropped_ticks} ticks and {self._dropped_requests} requests"

    def commit(self, batch: Batch) -> None:
        """Write a batch in one transaction, after those that could not be written before; never raises for the disk."""
        if batch.tick is not None:
            self._last_time = batch.tick.end
        self._add(encode_batch(batch, redactor=self._redactor))

    def set_engine(self, facts: EngineFacts) -> None:
        """Fill the engine in, or replace it after a restart."""
        row = (encode_engine(facts, redactor=self._redactor),)
        self._add(EncodedBatch(statements=[("UPDATE run SET engine = ?", [row])]))

    def new_commands(self) -> list[Command]:
        """Commands that viewers wrote since the last call, oldest first; none while the file cannot be read."""
        names = ", ".join(("seq", *schema.COMMAND.names))
        query = f"SELECT {names} FROM command WHERE seq > ? ORDER BY seq"
        try:
            rows = self._open().execute(query, (self._last_command,)).fetchall()
        except sqlite3.OperationalError:
            return []
        if rows:
            self._last_command = rows[-1][0]
        return COMMANDS.decode_all([dict(zip(("seq", *schema.COMMAND.names), row, strict=True)) for row in rows])

    def close(self, end: RunEnd, *, steady: Mapping[int, SteadyWindow] | None = None) -> None:
        """Write how the run ended, and each stage's steady window, and leave one plain file; further calls do nothing.

        What the disk still refuses is lost: `trouble` then says what.
        """
        if self._connection is None:
            return
        reason = self._redactor.sentence(end.reason)
        windows = None if steady is None else encode_windows(steady)
        self._add(EncodedBatch(statements=[(_END, [(end.at, int(end.exit_code), reason, windows)])]))
        fold_wal(self._connection)
        self._connection.close()
        self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise RecordingError(f"{self.path} is closed: nothing more can be recorded")
        return self._connection

    def _add(self, batch: EncodedBatch) -> None:
        connection = self._open()
        if batch.statements:
            self._waiting.append(batch)
        while self._waiting:
            failure = _write(connection, self._waiting[0])
            if failure is not None:
                self._failure = failure
                self._drop_oldest()
                return
            self._waiting.popleft()
        if self._failure is not None:
            self._failure = None
            self._tell_what_was_dropped()

    def _drop_oldest(self) -> None:
        rows = sum(each.rows for each in self._waiting)
        while rows > MAX_WAITING_ROWS and len(self._waiting) > 1:
            dropped = self._waiting.popleft()
            rows -= dropped.rows
            self._dropped_ticks += dropped.ticks
            self._dropped_requests += dropped.requests

    def _tell_what_was_dropped(self) -> None:
        if self._dropped:
            text = f"{self._dropped} are missing: the disk refused them for too long"
            note = Note(at=self._last_time, severity=Severity.ERROR, source="recorder", text=text)
            self._add(encode_batch(Batch(notes=[note]), redactor=self._redactor))


def connect_for_writing(path: Path) -> sqlite3.Connection:
    """A connection without transactions of its own making, and without patience; sqlite3.Error if it cannot be."""
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _write(connection: sqlite3.Connection, batch: EncodedBatch) -> str | None:
    """None when the batch is on disk, else why not."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        for statement, rows in batch.statements:
            connection.executemany(statement, rows)
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.ProgrammingError):
            raise
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return str(error)
    return None


def _claim(path: Path) -> None:
    """Create the empty file, so that no other run can take the name."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        if isinstance(error, FileExistsError) and path.exists():
            raise RecordingError(f"{path} exists already: remove it, or choose another file with --record") from error
        reason = (error.strerror or str(error)).lower()
        raise RecordingError(
            f"cannot record to {path} ({reason}): choose another file with --record, or --no-record"
        ) from error
