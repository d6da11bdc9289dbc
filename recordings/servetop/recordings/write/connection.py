"""Opens a recording's file for writing, writes batches to it and copies it to memory."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from servetop.core.errors import RecordingError, system_reason
from servetop.recordings.write.tick_transaction import EncodedBatch

BUSY_SECONDS = 0.25
"""Seconds that a commit waits for a viewer that is writing a command, before it is retried at the next tick."""


def connect_for_writing(path: Path) -> sqlite3.Connection:
    """Connect without implicit transactions and with a short busy timeout; raises sqlite3.Error."""
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def write_batch(connection: sqlite3.Connection, batch: EncodedBatch) -> str | None:
    """Write a batch in one transaction; return None if it is on disk, else the reason."""
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


def check_new(path: Path) -> None:
    """RecordingError if the file exists; a path that cannot exist is left to `claim_path`."""
    with contextlib.suppress(OSError):
        if path.exists():
            raise RecordingError(f"{path} already exists: remove it, or choose another file with --record")


def claim_path(path: Path) -> None:
    """Create the empty file, so that no other run can use its name; RecordingError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        if isinstance(error, FileExistsError):
            check_new(path)
        reason = system_reason(error)
        raise RecordingError(
            f"cannot record to {path} ({reason}): choose another file with --record, or --no-record"
        ) from error


def copy_to_memory(connection: sqlite3.Connection, batches: Iterable[EncodedBatch] = ()) -> sqlite3.Connection:
    """Copy the database of a connection, then add `batches`; RecordingError if it is no longer readable."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        connection.backup(copy)
        for batch in batches:
            for statement, rows in batch.statements:
                copy.executemany(statement, rows)
    except sqlite3.Error as error:
        copy.close()
        raise RecordingError(f"the recorded data can no longer be read ({error})") from error
    return copy
