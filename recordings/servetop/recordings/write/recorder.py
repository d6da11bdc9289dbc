"""The only writer of a recording: one transaction per tick, and a queue in memory while the disk fails."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servetop.analysis.trust.steady_state import SteadyWindow
from servetop.core.config import RunConfig
from servetop.core.errors import RecordingError
from servetop.core.events import Command, Note, RunEnd, Severity
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.interfaces.unrecorded import Unrecorded
from servetop.core.text.counted import counted
from servetop.core.text.encodable import encodable
from servetop.core.text.known_secrets import redactor_of
from servetop.core.text.redaction import Redactor
from servetop.recordings.format import schema
from servetop.recordings.format.header import encode_config, encode_engine, encode_header, encode_manifest
from servetop.recordings.format.liveness import Writer
from servetop.recordings.format.row_codec import COMMANDS
from servetop.recordings.format.steady_codec import encode_windows
from servetop.recordings.format.tick_checksum import checksum_in
from servetop.recordings.read.open import OpenedFile, checkpoint_wal
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.connection import claim_path, connect_for_writing, copy_to_memory, write_batch
from servetop.recordings.write.downsampling import FULL_SECONDS, Downsampling
from servetop.recordings.write.open_file import OpenFile
from servetop.recordings.write.tick_transaction import EncodedBatch, TickTransaction, encode_batch

MAX_WAITING_ROWS = 100_000
"""Maximum rows kept in memory while the disk fails; beyond that, the oldest batches are dropped and counted."""

_END = "UPDATE run SET end_at = ?, exit_code = ?, end_reason = ?, steady = ?, headline = ?, counted = ?"


class Recorder:
    """Writes a run to its file. A full disk or a removed file does not stop the run; `failing` reports it."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, redactor: Redactor) -> None:
        self._file, self._opened_as = OpenFile(path), path
        self._removed = False
        self._checksum = checksum_in(connection)
        self._connection: sqlite3.Connection | None = connection
        self._redactor = redactor
        self._queue: deque[EncodedBatch] = deque()
        self._failure: str | None = None
        self._last_failure = ""
        self._memory_copy: sqlite3.Connection | None = None
        self._ticks = self._requests = 0
        self._dropped_ticks = self._dropped_requests = 0
        self._last_command = 0
        self._last_time = 0.0
        self._downsampling: Downsampling | None = None

    @classmethod
    def create(cls, path: Path, header: RunHeader) -> Recorder:
        """Create a new file (and its folder) with the run's header; RecordingError if it exists or creation fails."""
        redactor = redactor_of(header.config)
        claim_path(path)
        try:
            connection = connect_for_writing(path)
            try:
                connection.execute(
                    "BEGIN"
                )  # tables and header in one transaction: no reader sees a recording without a header
                schema.create_tables(connection)
                columns = encode_header(header, writer=Writer.this_process(), redactor=redactor)
                values = ", ".join("?" * len(columns))
                connection.execute(f"INSERT INTO run ({', '.join(columns)}) VALUES ({values})", [*columns.values()])
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
        try:
            return cls(connection, path, redactor=redactor)
        except (OSError, sqlite3.Error) as error:
            connection.close()
            raise RecordingError(f"cannot record to {path}: it was removed immediately, or its disk fails") from error

    @property
    def path(self) -> Path:
        """The current path of the file, even after a move."""
        return self._file.path

    @property
    def failing(self) -> str | None:
        """Why the file cannot be written now, with a constant text for as long as that lasts; None if it can."""
        if self._removed:
            return f"{self.path} was removed while it was written"
        return None if self._failure is None else f"{self.path} cannot be written ({self._last_failure})"

    @property
    def unrecorded(self) -> Unrecorded | None:
        """Data that is not in the file now; None if it is complete."""
        if self._removed:
            return Unrecorded(ticks=self._ticks, requests=self._requests, reason=self.failing or "")
        if self._failure is None and not self._dropped:
            return None
        ticks = self._dropped_ticks + sum(each.ticks for each in self._queue)
        requests = self._dropped_requests + sum(each.requests for each in self._queue)
        reason = f"{self.path} {'cannot' if self._failure else 'could not'} be written ({self._last_failure})"
        return Unrecorded(ticks=ticks, requests=requests, reason=reason)

    @property
    def trouble(self) -> str | None:
        """One line while data are not on disk, and permanently once data have been dropped; None otherwise."""
        if self._failure is None and not self._dropped:
            return None
        parts = [f"{self.path.name}: "]
        if self._failure is not None:
            parts.append(f"cannot be written ({self._failure}), {self._queued_text()} kept in memory")
        if self._dropped:
            parts.append(f"{'; ' if self._failure else ''}{self._dropped} were dropped")
        return "".join(parts)

    def _queued_text(self) -> str:
        ticks, requests = (sum(getattr(each, name) for each in self._queue) for name in ("ticks", "requests"))
        return f"{counted(ticks, 'tick')} and {counted(requests, 'request')}"

    @property
    def _dropped(self) -> str:
        if not (self._dropped_ticks or self._dropped_requests):
            return ""
        return f"{counted(self._dropped_ticks, 'tick')} and {counted(self._dropped_requests, 'request')}"

    def commit(self, batch: TickTransaction) -> None:
        """Write a batch in one transaction, after the queued ones; never raises for disk errors."""
        if batch.tick is not None:
            self._last_time = batch.tick.end
        if self._failure is not None:  # soon outdated, they would use up the memory for what must not be lost
            batch = dataclasses.replace(batch, in_flight=None)
        encoded = encode_batch(batch, redactor=self._redactor, checksum=self._checksum)
        self._ticks += encoded.ticks
        self._requests += encoded.requests
        self._locate_file()
        self._add(encoded)
        if self._downsampling is not None and self._failure is None:
            self._downsampling.step(self._last_time)

    def downsample(self, *, keep: float | None = None, full: float = FULL_SECONDS) -> None:
        """From now on merge what is older than `full` seconds, and drop what is older than `keep`, step by step."""
        self._downsampling = Downsampling(self._open(), checksum=self._checksum, keep=keep, full=full)

    def _locate_file(self) -> None:
        """Detect that the file was moved (writing continues there) or removed."""
        path = self._file.current_path()
        self._removed = path is None
        if path is not None:
            self._file.path = path

    def reader(self) -> RecordingReader:
        """Return a reader of all data: of the file, or of a copy in memory if it is incomplete, even after `close`.

        RecordingError if the file cannot be read.
        """
        if self._connection is None:
            source, missing = self._memory_copy, []
        else:
            self._locate_file()
            self._add(EncodedBatch(statements=[]))  # retry the queued batches
            source, missing = self._connection if self._needs_copy else None, [*self._queue]
        if source is None:
            return RecordingReader.open(self.path)
        return RecordingReader(OpenedFile(copy_to_memory(source, missing), in_memory=True), self.path)

    @property
    def _needs_copy(self) -> bool:
        """Whether the file is incomplete, or was moved away from its write-ahead log."""
        return bool(self._queue) or self._removed or self.path != self._opened_as

    def set_engine(self, facts: EngineFacts) -> None:
        """Record the facts of the engine, or replace them after a restart."""
        row = (encode_engine(facts, redactor=self._redactor),)
        self._add(EncodedBatch(statements=[("UPDATE run SET engine = ?", [row])]))

    def set_config(self, config: RunConfig) -> None:
        """Replace the recorded configuration, as when a running load is handed to a search."""
        self._add(
            EncodedBatch(
                statements=[("UPDATE run SET config = ?", [(encode_config(config, redactor=self._redactor),)])]
            )
        )

    def set_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Record the manifest, or replace it."""
        row = (encode_manifest(manifest, redactor=self._redactor),)
        self._add(EncodedBatch(statements=[("UPDATE run SET manifest = ?", [row])]))

    def set_random_tokens(self, tokens: str) -> None:
        """Record what prompts of random token ids consist of: `ordinary` or `unchecked` tokens."""
        self._add(EncodedBatch(statements=[("UPDATE run SET (random_tokens) = (?)", [(tokens,)])]))

    def new_commands(self) -> list[Command]:
        """Return the commands from viewers since the last call, oldest first; none while the file cannot be read."""
        names = ", ".join(("seq", *schema.COMMAND.names))
        query = f"SELECT {names} FROM command WHERE seq > ? ORDER BY seq"
        try:
            rows = self._open().execute(query, (self._last_command,)).fetchall()
        except sqlite3.OperationalError:
            return []
        if rows:
            self._last_command = rows[-1][0]
        return COMMANDS.decode_all([dict(zip(("seq", *schema.COMMAND.names), row, strict=True)) for row in rows])

    def close(
        self,
        end: RunEnd,
        *,
        steady: Mapping[int, SteadyWindow] | None = None,
        headline: str | None = None,
        counted: str | None = None,
    ) -> None:
        """Write the end of the run, steady windows and verdict, and leave one plain file; further calls do nothing.

        `counted` says which requests the run's totals have, as `Selection.as_json` does, for the views of the file.
        Data that still cannot be written remain in memory for `reader`, and `unrecorded` counts them.
        """
        if self._connection is None:
            return
        self._locate_file()
        reason = encodable(self._redactor.sentence(end.reason))
        windows = None if steady is None else encode_windows(steady)
        verdict = None if headline is None else encodable(self._redactor.sentence(headline))
        row = (end.at, int(end.exit_code), reason, windows, verdict, counted)
        last = EncodedBatch(statements=[(schema.FORGET_IN_FLIGHT, [()]), (_END, [row])])
        if self._failure is None:
            self._add(last)
        else:
            write_batch(self._connection, last)  # a small row may fit, which records that the file is incomplete
        if self._queue or self._removed:
            with contextlib.suppress(RecordingError):
                self._memory_copy = copy_to_memory(self._connection, [*self._queue, last])
        self._leave_one_file(self._connection)
        self._connection = None

    def _leave_one_file(self, connection: sqlite3.Connection) -> None:
        """Merge the write-ahead log and delete it; SQLite deletes it only under the file's original name."""
        if self.path == self._opened_as and not self._removed:
            checkpoint_wal(connection)
            connection.close()
            return
        with contextlib.suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.close()
        for suffix in () if self._opened_as.exists() else ("-wal", "-shm"):  # unless another run uses the name
            self._opened_as.with_name(self._opened_as.name + suffix).unlink(missing_ok=True)
        if not self._removed:
            with contextlib.suppress(sqlite3.Error), contextlib.closing(connect_for_writing(self.path)) as moved:
                checkpoint_wal(moved)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise RecordingError(f"{self.path} is closed: nothing more can be recorded")
        return self._connection

    def _add(self, batch: EncodedBatch) -> None:
        connection = self._open()
        if batch.statements:
            self._queue.append(batch)
        while self._queue:
            failure = write_batch(connection, self._queue[0])
            if failure is not None:
                self._failure = self._last_failure = failure
                self._drop_oldest()
                return
            self._queue.popleft()
        if self._failure is not None:
            self._failure = None
            self._note_dropped()

    def _drop_oldest(self) -> None:
        rows = sum(each.rows for each in self._queue)
        while rows > MAX_WAITING_ROWS and len(self._queue) > 1:
            dropped = self._queue.popleft()
            rows -= dropped.rows
            self._dropped_ticks += dropped.ticks
            self._dropped_requests += dropped.requests

    def _note_dropped(self) -> None:
        if self._dropped:
            text = f"{self._dropped} are missing: the file could not be written for too long"
            note = Note(at=self._last_time, severity=Severity.ERROR, source="recorder", text=text)
            self._add(encode_batch(TickTransaction(notes=[note]), redactor=self._redactor, checksum=self._checksum))
