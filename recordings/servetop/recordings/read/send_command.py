"""Writes commands for a live run into its recording, and nothing else of another process."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from servetop.core.errors import RecordingError

SEND_TIMEOUT = 2.0
"""Seconds to wait for the writer's transaction before a command is written."""
Row = tuple[float, str, float | None, str, str]
"""Run time in seconds, action, value, text and source."""
_STATEMENT = "INSERT INTO command (at, action, value, text, source) VALUES (?, ?, ?, ?, ?)"


def write_command(path: Path, row: Row) -> None:
    """Add a command; RecordingError if the file cannot be written."""
    try:
        with contextlib.closing(connect_to(path, timeout=SEND_TIMEOUT)) as connection:
            connection.execute(_STATEMENT, row)
    except sqlite3.Error as error:
        message = f"cannot send a command to {path.stem} ({error}): check that you may write to {path}"
        raise RecordingError(message) from error


def connect_to(path: Path, *, timeout: float) -> sqlite3.Connection:
    """Open an existing file for writing; `timeout` is how long to wait for other writers, seconds."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None)
