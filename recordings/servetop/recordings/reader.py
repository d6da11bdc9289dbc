"""Reads a recording, finished or growing: the `RunSource` of every viewer, and the rows behind final numbers."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from servetop.core.clock import MonotonicClock
from servetop.core.errors import RecordingError, UsageError
from servetop.core.events import Action, Command, EngineSample, Note, RequestRecord, RunEnd, Severity, StageChange
from servetop.core.source import RunHeader, RunUpdate
from servetop.core.tick import Tick
from servetop.recordings import schema
from servetop.recordings.header import decode_end, decode_header
from servetop.recordings.liveness import Writer
from servetop.recordings.opening import Opened, fold_wal, open_for_reading
from servetop.recordings.request_codec import ENDED
from servetop.recordings.table_reader import TableReader

SEND_TIMEOUT = 2.0
"""Seconds that sending a command waits for the writer's transaction."""

_Event = TypeVar("_Event")


class RecordingReader:
    """One recording, opened for reading; give it to one thread at a time."""

    def __init__(self, opened: Opened, path: Path) -> None:
        self.path = path
        self._opened = opened
        self._tables = TableReader(opened.connection, path, damage=opened.damage)
        self._run = self._read_run()
        self._header = self._decoded_header()
        self._version: int | None = None
        self._seen: dict[str, int] = {}
        self._pending: set[int] = set()
        self._told: set[str] = set()

    @classmethod
    def open(cls, path: Path) -> RecordingReader:
        """Open a file; RecordingError, one line, when it is missing, no recording, too new or beyond reading."""
        opened = open_for_reading(path)
        try:
            return cls(opened, path)
        except RecordingError:
            _release(opened)
            raise

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem

    @property
    def header(self) -> RunHeader:
        """As of the last poll."""
        return self._header

    @property
    def end(self) -> RunEnd | None:
        """How the run ended, as of the last poll; None while it goes on, and when it broke off."""
        return decode_end(self._run)

    @property
    def damage(self) -> str | None:
        """One line when some of the file could not be read (so far); None when all is well."""
        return self._tables.damage

    def poll(self) -> RunUpdate:
        """All that was committed since the last call; costs next to nothing when there is nothing."""
        version = self._tables.data_version()
        if version == self._version:
            return RunUpdate()
        first, self._version = self._version is None, version
        with self._tables.snapshot():
            before, self._run = self._run, self._read_run()
            if first or any(before[name] != self._run[name] for name in ("engine", "config")):
                self._header = self._decoded_header()
                header: RunHeader | None = self._header
            else:
                header = None
            return RunUpdate(
                stages=self._new(schema.STAGE),
                commands=self._new_commands(),
                log_lines=self._new(schema.LOG_LINE),
                ticks=self._new(schema.TICK),
                notes=[*self._new(schema.NOTE), *self._damage_note()],
                header=header,
                end=self.end if first or before["end_at"] != self._run["end_at"] else None,
            )

    def is_live(self) -> bool:
        """The run has not ended and the process that writes it is there."""
        if decode_end(self._run) is not None:
            return False
        writer = Writer.from_json(self._run["writer"])
        return writer is not None and writer.is_alive()

    def send(self, action: Action, *, value: float | None = None, text: str = "", source: str = "keyboard") -> None:
        """Leave a command for the run; RecordingError when there is nobody to obey it, or it cannot be written."""
        if not self.is_live():
            raise RecordingError(f"{self.name} is not running: it can be watched, not steered")
        at = MonotonicClock(self.header.anchor.origin_ns).now()
        statement = "INSERT INTO command (at, action, value, text, source) VALUES (?, ?, ?, ?, ?)"
        try:
            with contextlib.closing(self._writing(SEND_TIMEOUT)) as connection:
                connection.execute(statement, (at, str(action), value, text, source))
        except sqlite3.Error as error:
            raise RecordingError(f"cannot steer {self.name} ({error}): may you write to {self.path}?") from error

    def requests(self, start: float, until: float) -> Sequence[RequestRecord]:
        """Finished requests that were in flight at any time between two instants, by due time."""
        where = f"{ENDED} >= ? AND sent <= ?"
        found: list[RequestRecord] = self._tables.events(
            schema.REQUEST, where=where, parameters=(start, until), order="due, seq"
        )
        return found

    def request_count(self) -> int:
        """Requests that ended, however they did."""
        return next((int(row[0]) for row in self._tables.rows("request", ("count(*)",))), 0)

    def ticks(self) -> list[Tick]:
        """All ticks, whatever `poll` gave."""
        return self._tables.events(schema.TICK)

    def stages(self) -> list[StageChange]:
        """All stages, in order."""
        return self._tables.events(schema.STAGE)

    def engine_samples(self) -> list[EngineSample]:
        """All scrapes of the engine's metrics, in order."""
        return self._tables.events(schema.ENGINE_SAMPLE)

    def request_rows(
        self, columns: Sequence[str], *, where: str = "", parameters: Sequence[Any] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """Raw rows of table `request`, streamed in the order in which they were written; stops at damage."""
        return self._tables.rows("request", columns, where=where, parameters=parameters)

    def close(self) -> None:
        """Let go of the file; of a run that is over the write-ahead log is folded in, so that it is one file."""
        over = self.end is not None or self._writer_is_gone()
        _release(self._opened)
        if over and self._opened.scratch is None and self._opened.damage is None and self._has_log():
            with contextlib.suppress(sqlite3.Error), contextlib.closing(self._writing(0.0)) as connection:
                fold_wal(connection)

    def _has_log(self) -> bool:
        return self.path.with_name(self.path.name + "-wal").exists()

    def _writer_is_gone(self) -> bool:
        writer = Writer.from_json(self._run["writer"])
        return writer is not None and writer.is_here() and not writer.is_alive()

    def _writing(self, timeout: float) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?mode=rw"
        return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)

    def _read_run(self) -> dict[str, Any]:
        rows = list(self._tables.row_dicts("run", tuple(schema.RUN_COLUMNS)))
        if not rows:
            raise RecordingError(f"{self.path} is damaged: it has no header, so nothing in it can be understood")
        return dict.fromkeys(schema.RUN_COLUMNS) | rows[0]

    def _decoded_header(self) -> RunHeader:
        try:
            return decode_header(self._run)
        except (ValueError, TypeError, UsageError) as error:
            raise RecordingError(f"{self.path} is damaged: its header cannot be understood ({error})") from error

    def _new(self, table: schema.EventTable) -> list[Any]:
        last = self._seen.get(table.name, 0)
        events, self._seen[table.name] = self._tables.events_after(table, last)
        return events

    def _new_commands(self) -> list[Command]:
        """New ones, and older ones again that were answered."""
        waiting = ", ".join(map(str, sorted(self._pending)))
        older: list[Command] = self._tables.events(schema.COMMAND, where=f"seq IN ({waiting})") if waiting else []
        answered = [command for command in older if _is_answered(command)]
        new: list[Command] = self._new(schema.COMMAND)
        self._pending -= {command.id for command in answered}
        self._pending |= {command.id for command in new if not _is_answered(command)}
        return [*answered, *new]

    def _damage_note(self) -> list[Note]:
        """Damage is told once, on the time line, where the ticks end."""
        if self.damage is None or self.damage in self._told:
            return []
        self._told.add(self.damage)
        return [Note(at=0.0, severity=Severity.ERROR, source="recorder", text=self.damage)]


def _is_answered(command: Command) -> bool:
    return command.reply is not None or command.obeyed_at is not None


def _release(opened: Opened) -> None:
    opened.connection.close()
    if opened.scratch is not None:
        shutil.rmtree(opened.scratch, ignore_errors=True)
