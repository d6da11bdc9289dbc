"""Counts the requests of a recording by stage and status, again only when the file has changed."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.core.events import RequestStatus
from servetop.recordings.format.column_bounds import valid_request_condition
from servetop.recordings.read.table_reader import TableReader


class CountsByStage:
    """The numbers of ended requests, which several parts of a summary need."""

    def __init__(self, tables: TableReader) -> None:
        self._tables = tables
        self._version: int | None = None
        self._counts: Mapping[int, Mapping[str, int]] = {}

    def read(self, *, version: int) -> Mapping[int, Mapping[str, int]]:
        """Return the numbers by stage and status; the table is scanned for each new version of the file.

        Requests of an unknown stage are not counted.
        """
        if version != self._version:
            self._counts, self._version = self._scanned(), version
        return self._counts

    def _scanned(self) -> Mapping[int, Mapping[str, int]]:
        """Count the requests of each stage by its index, and the failed ones by a scan of the table."""
        valid, ok = f"stage IS NOT NULL AND {valid_request_condition(('stage', 'status'))}", str(RequestStatus.OK)
        counts: dict[int, dict[str, int]] = {}
        totals = self._tables.rows("request", ("stage", "count(*)"), where=f"{valid} GROUP BY stage")
        for stage, count in totals:
            counts[int(stage)] = {ok: int(count)}
        others = f"{valid} AND status IS NOT ? GROUP BY +stage, status"
        rows = self._tables.rows("request", ("stage", "status", "count(*)"), where=others, parameters=(ok,))
        for stage, status, count in rows:
            of_stage = counts.setdefault(int(stage), {ok: 0})
            of_stage[str(status)] = int(count)
            of_stage[ok] -= int(count)
        return {stage: {status: count for status, count in each.items() if count} for stage, each in counts.items()}
