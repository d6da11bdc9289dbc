"""The commands of a recording that are new, or have received a reply, since they were last read."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.events import Command
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
