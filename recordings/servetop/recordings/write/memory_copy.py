"""A copy of a recording in memory, including data that could not be written to disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from servetop.core.errors import RecordingError
from servetop.recordings.write.tick_transaction import EncodedBatch


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
