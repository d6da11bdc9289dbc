"""Counts the requests of a recording by stage and status, again only when the file has changed."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.recordings.format.column_bounds import valid_request_condition
from servetop.recordings.read.table_reader import TableReader


class RequestCounts:
    """The numbers of ended requests, which several parts of a summary need."""

    def __init__(self, tables: TableReader) -> None:
        self._tables = tables
        self._version: int | None = None
        self._counts: Mapping[int, Mapping[str, int]] = {}

    def read(self) -> Mapping[int, Mapping[str, int]]:
        """Return the numbers by stage and status; the table is scanned after each commit of another connection."""
        version = self._tables.data_version()
        if version != self._version:
            self._counts, self._version = self._scanned(), version
        return self._counts

    def _scanned(self) -> Mapping[int, Mapping[str, int]]:
        counts: dict[int, dict[str, int]] = {}
        grouped = f"{valid_request_condition(('stage', 'status'))} GROUP BY stage, status"
        for stage, status, count in self._tables.rows("request", ("stage", "status", "count(*)"), where=grouped):
            counts.setdefault(int(stage), {})[str(status)] = int(count)
        return counts
