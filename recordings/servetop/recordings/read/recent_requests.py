"""The last requests before an instant, read again and again while a viewer watches: known ones are not read twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.events import RequestRecord
from servetop.recordings.format.schema import REQUEST
from servetop.recordings.read.table_reader import TableReader


class RecentRequests:
    """Keeps the requests of its last answer. The row of a request that ended does not change any more."""

    def __init__(self, tables: TableReader) -> None:
        self._tables = tables
        self._known: Mapping[int, RequestRecord] = {}

    def last(self, most: int, *, where: str, parameters: Sequence[Any]) -> list[RequestRecord]:
        """Those due last among the ones that the condition selects, by due time; at most so many."""
        order = f"due DESC, seq DESC LIMIT {most:d}"
        rows = self._tables.rows("request", ("seq",), where=where, parameters=parameters, order=order)
        wanted = [int(seq) for (seq,) in rows]
        new = sorted(seq for seq in wanted if seq not in self._known)
        listed = ", ".join(map(str, new))
        read = self._tables.numbered_events(REQUEST, where=f"seq IN ({listed})") if new else []
        known = {**self._known, **dict(read)}
        self._known = {seq: known[seq] for seq in reversed(wanted) if seq in known}
        return list(self._known.values())
