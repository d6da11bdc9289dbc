"""What a viewer that polls gets of the rows that it has read before: replies to commands, and the last requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.events import Command, RequestRecord
from servetop.recordings.format import schema
from servetop.recordings.read.table_reader import TableReader


class PendingCommands:
    """Remembers which commands had no reply yet."""

    def __init__(self) -> None:
        self._pending: set[int] = set()

    def with_replies(self, tables: TableReader, new: Sequence[Command]) -> list[Command]:
        """Return the older commands that have received a reply, and the new ones."""
        pending = ", ".join(map(str, sorted(self._pending)))
        older: list[Command] = tables.events(schema.COMMAND, where=f"seq IN ({pending})") if pending else []
        done = [command for command in older if _is_done(command)]
        self._pending -= {command.id for command in done}
        self._pending |= {command.id for command in new if not _is_done(command)}
        return [*done, *new]


def _is_done(command: Command) -> bool:
    return command.reply is not None or command.applied_at is not None


class RecentRequests:
    """Caches the requests of the last result, because the row of an ended request does not change."""

    def __init__(self, tables: TableReader) -> None:
        self._tables = tables
        self._known: Mapping[int, RequestRecord] = {}

    def last(self, most: int, *, where: str, parameters: Sequence[Any]) -> list[RequestRecord]:
        """Return the last `most` of the selected requests, by due time."""
        order = f"due DESC, seq DESC LIMIT {most:d}"
        rows = self._tables.rows("request", ("seq",), where=where, parameters=parameters, order=order)
        selected = [int(seq) for (seq,) in rows]
        new = ", ".join(map(str, sorted(seq for seq in selected if seq not in self._known)))
        read = self._tables.numbered_events(schema.REQUEST, where=f"seq IN ({new})") if new else []
        known = {**self._known, **dict(read)}
        self._known = {seq: known[seq] for seq in reversed(selected) if seq in known}
        return list(self._known.values())
