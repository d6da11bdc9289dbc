"""Opening a recording for reading, whatever state it is in: growing, finished, left behind, read-only, torn."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path

from servetop.core.errors import RecordingError
from servetop.recordings.schema import APPLICATION_ID, FORMAT_MAJOR

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_BUSY_SECONDS = 2.0
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection that reads, and what was special about getting it."""

    connection: sqlite3.Connection
    damage: str | None = None
    """Why not everything can be read, in SQLite's words."""
    scratch: Path | None = None
    """A temporary folder with a copy, to be removed at the end."""
    in_memory: bool = False
    """A copy in memory: there is no file behind it."""


def open_for_reading(path: Path) -> Opened:
    """A read-only connection; RecordingError when the file is missing, no recording, too new or beyond reading."""
    _check_marks(path, _first_bytes(path))
    try:
        return Opened(_connect(path.absolute(), "mode=ro"))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if is_damage(error):
            return _salvage(path, error)
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise RecordingError(f"cannot read {path} ({error}): is another program using it?") from error
    return _open_in_read_only_folder(path)


def is_damage(error: Exception) -> bool:
    """The file's content is at fault, rather than the disk, a lock or a permission.

    A text that is no UTF-8 is such damage, also when it is part of SQLite's own message (UnicodeDecodeError).
    """
    code = getattr(error, "sqlite_errorcode", None)
    corrupt = code is not None and code & 0xFF in _CORRUPT
    return corrupt or isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error)


def fold_wal(connection: sqlite3.Connection) -> bool:
    """Move the write-ahead log into the file and delete it; False when another connection still needs it."""
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return bool(connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete")
    except sqlite3.OperationalError:
        return False


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEADER_BYTES)
    except FileNotFoundError as error:
        raise RecordingError(f"there is no recording {path}: servetop ls shows those that there are") from error
    except OSError as error:
        raise RecordingError(f"cannot read {path} ({(error.strerror or str(error)).lower()})") from error


def _check_marks(path: Path, start: bytes) -> None:
    if not start:
        raise RecordingError(f"{path} is empty: its run ended before it began; it can be removed")
    marked = start.startswith(_MAGIC) and int.from_bytes(start[68:72], "big") == APPLICATION_ID
    if not marked or len(start) < _HEADER_BYTES:
        raise RecordingError(f"{path} is no servetop recording: servetop ls shows those that there are")
    major = int.from_bytes(start[60:64], "big") // 1000
    if major > FORMAT_MAJOR:
        raise RecordingError(
            f"{path} was written by a newer servetop (format {major}); this one reads format {FORMAT_MAJOR}: "
            "upgrade servetop"
        )


def _connect(path: Path, mode: str, *, salvaging: bool = False) -> sqlite3.Connection:
    """Connect and prove that the schema can be read."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        if salvaging:  # without it SQLite refuses a file that is shorter than its first page says
            connection.execute("PRAGMA writable_schema = ON")
        connection.execute("SELECT name FROM sqlite_master").fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    return connection


def _salvage(path: Path, cause: Exception) -> Opened:
    try:
        return Opened(_connect(path.absolute(), "mode=ro", salvaging=True), damage=str(cause))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path} is damaged ({error}): nothing in it can be read") from error


def _open_in_read_only_folder(path: Path) -> Opened:
    """SQLite needs to write beside a file with a write-ahead log; without one it need not, else read a copy."""
    log = path.with_name(path.name + "-wal")
    try:
        if not log.exists() or log.stat().st_size == 0:
            return Opened(_connect(path.absolute(), "mode=ro&immutable=1"))
        scratch = Path(tempfile.mkdtemp(prefix="servetop-"))
        for each in (path, log):
            shutil.copyfile(each, scratch / each.name)
        os.chmod(scratch / path.name, 0o600)
        return Opened(_connect(scratch / path.name, "mode=ro"), scratch=scratch)
    except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
        raise RecordingError(f"cannot read {path} ({error}): copy it to a folder of your own") from error
