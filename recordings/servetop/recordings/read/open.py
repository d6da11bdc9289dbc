"""Opens a recording for reading in any state: growing, finished, abandoned, read-only or torn."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from servetop.core.errors import NotARecordingError, RecordingError, system_reason
from servetop.recordings.format.reader_limits import ReadBudget, harden
from servetop.recordings.format.schema import APPLICATION_ID, FORMAT_MAJOR
from servetop.recordings.format.schema_check import schema_rows, unexpected_object
from servetop.recordings.read.send_command import connect_to

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_BUSY_SECONDS = 2.0
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_INTERRUPT)
"""SQLITE_INTERRUPT: `ReadBudget` ended a query that read the same pages repeatedly."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A read-only connection, and how the file was opened."""

    connection: sqlite3.Connection
    damage: str | None = None
    """SQLite's message, if not everything can be read."""
    size: int | None = None
    """Bytes of a damaged file and its write-ahead log, because its first page may be wrong; None if undamaged."""
    scratch: Path | None = None
    """The temporary folder of a copy, removed on close."""
    in_memory: bool = False
    """Whether this is a copy in memory, without a file."""

    def release(self) -> None:
        """Close the connection, and remove the temporary folder."""
        self.connection.close()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def open_for_reading(path: Path) -> OpenedFile:
    """Open a read-only connection; NotARecordingError if the file is missing, not a recording, too new or unreadable.

    RecordingError if the recording is so damaged that nothing can be read.
    """
    _check_signature(path, _first_bytes(path))
    try:
        return _connect(path.absolute(), "mode=ro", shown=path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if is_damage(error):
            return _salvage(path, error)
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise NotARecordingError(f"cannot read {path} ({error}): is another program using it?") from error
    return _open_in_read_only_folder(path)


def is_damage(error: Exception) -> bool:
    """Whether the cause is the file's content, rather than the disk, a lock or a permission.

    Invalid UTF-8 is damage, even within SQLite's message (UnicodeDecodeError).
    """
    code = getattr(error, "sqlite_errorcode", None)
    corrupt = code is not None and code & 0xFF in _CORRUPT
    return corrupt or isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error)


def short_message(error: Exception) -> str:
    """Return SQLite's message without undecodable text, which may be long or contain a prompt."""
    return str(error).partition(" with text '")[0]


def checkpoint_wal(connection: sqlite3.Connection) -> bool:
    """Merge the write-ahead log into the file and delete it; False if another connection still needs it."""
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return bool(connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete")
    except sqlite3.OperationalError:
        return False


def merge_log_of(path: Path) -> None:
    """Merge the write-ahead log that was left beside a file into it, unless another connection needs it."""
    if path.with_name(f"{path.name}-wal").exists():
        with contextlib.suppress(sqlite3.Error), contextlib.closing(connect_to(path, timeout=0.0)) as connection:
            checkpoint_wal(connection)


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEADER_BYTES)
    except FileNotFoundError as error:
        raise NotARecordingError(f"no such recording: {path}: servetop ls lists the recordings") from error
    except OSError as error:
        raise NotARecordingError(f"cannot read {path} ({system_reason(error)})") from error


def _check_signature(path: Path, start: bytes) -> None:
    if not start:
        raise NotARecordingError(f"{path} is empty: its run failed to start, and it can be removed")
    is_recording = start.startswith(_MAGIC) and int.from_bytes(start[68:72], "big") == APPLICATION_ID
    if not is_recording or len(start) < _HEADER_BYTES:
        raise NotARecordingError(f"{path} is not a servetop recording: servetop ls lists the recordings")
    major = int.from_bytes(start[60:64], "big") // 1000
    if major > FORMAT_MAJOR:
        raise NotARecordingError(
            f"{path} was written by a newer servetop (format {major}); this one reads format {FORMAT_MAJOR}: "
            "upgrade servetop"
        )


def _size_of(path: Path) -> int:
    size = 0
    for file in (path, path.with_name(f"{path.name}-wal")):
        with contextlib.suppress(OSError):
            size += file.stat().st_size
    return size


def _connect(path: Path, mode: str, *, shown: Path, salvaging: bool = False) -> OpenedFile:
    """Connect, and check that the schema is readable and a recording's; `shown` is the path for messages."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        harden(connection, salvaging=salvaging)
        size = _size_of(path) if salvaging else None
        ReadBudget(connection, size=size)
        unexpected = unexpected_object(schema_rows(connection))
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    if unexpected is not None:
        connection.close()
        raise NotARecordingError(f"{shown} is not opened: it contains {unexpected}")
    return OpenedFile(connection, size=size)


def _salvage(path: Path, cause: Exception) -> OpenedFile:
    try:
        return replace(_connect(path.absolute(), "mode=ro", shown=path, salvaging=True), damage=short_message(cause))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path} is damaged ({short_message(error)}): nothing in it can be read") from error
    except NotARecordingError as error:  # a table whose definition is cut short is none of servetop's
        raise RecordingError(f"{path} is damaged ({short_message(cause)}): nothing in it can be read") from error


def _open_in_read_only_folder(path: Path) -> OpenedFile:
    """Open a file as immutable if it has no write-ahead log; else open a copy, because SQLite must write beside it."""
    log = path.with_name(path.name + "-wal")
    try:
        if not log.exists() or log.stat().st_size == 0:
            return _connect(path.absolute(), "mode=ro&immutable=1", shown=path)
        return _open_copy(path, log)
    except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
        raise NotARecordingError(f"cannot read {path} ({error}): copy it to a folder of your own") from error


def _open_copy(path: Path, log: Path) -> OpenedFile:
    scratch = Path(tempfile.mkdtemp(prefix="servetop-"))
    try:
        for file in (path, log):
            shutil.copyfile(file, scratch / file.name)
        os.chmod(scratch / path.name, 0o600)
        return replace(_connect(scratch / path.name, "mode=ro", shown=path), scratch=scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
