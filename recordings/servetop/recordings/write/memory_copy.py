"""A recording in memory: what the disk has of a run, with what it did not take."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from servetop.core.errors import RecordingError
from servetop.recordings.write.tick_transaction import EncodedBatch


def copy_to_memory(connection: sqlite3.Connection, batches: Iterable[EncodedBatch] = ()) -> sqlite3.Connection:
    """All that a connection can read, and `batches` after it; RecordingError when it cannot be read any more."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        connection.backup(copy)
        for batch in batches:
            for statement, rows in batch.statements:
                copy.executemany(statement, rows)
    except sqlite3.Error as error:
        copy.close()
        raise RecordingError(f"what was recorded cannot be read any more ({error})") from error
    return copy
