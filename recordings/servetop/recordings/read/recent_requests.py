"""The last requests for a viewer that polls, without reading known ones again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.events import RequestRecord
from servetop.recordings.format.schema import REQUEST
from servetop.recordings.read.table_reader import TableReader


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
        read = self._tables.numbered_events(REQUEST, where=f"seq IN ({new})") if new else []
        known = {**self._known, **dict(read)}
        self._known = {seq: known[seq] for seq in reversed(selected) if seq in known}
        return list(self._known.values())
