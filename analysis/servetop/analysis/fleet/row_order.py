"""The order of the rows of several servers: what hurts first, without rows that jump with each reading."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow

REORDER_SECONDS = 10.0
"""Between two orders of rows of one class by their figures."""


class RowOrder:
    """Keeps the order of rows: one moves at once when its class changes, else only every REORDER_SECONDS."""

    def __init__(self) -> None:
        self._kinds: dict[int, ReplicaClass] = {}
        self._places: dict[int, int] = {}
        self._ordered_at = -math.inf

    def ordered(self, rows: Sequence[ReplicaRow], at: float) -> list[ReplicaRow]:
        """Return the rows in their order at `at` seconds; an earlier time than before orders them again."""
        kinds = {row.number: row.kind for row in rows}
        due = (
            at >= self._ordered_at + REORDER_SECONDS or at < self._ordered_at or not kinds.keys() <= self._kinds.keys()
        )
        if due:
            found, self._ordered_at = sorted(rows, key=_hurts), at
        else:
            found = sorted(rows, key=self._kept)
        self._kinds, self._places = kinds, {row.number: place for place, row in enumerate(found)}
        return found

    def _kept(self, row: ReplicaRow) -> tuple[int, int]:
        """Rows of a class keep their order; one that has just joined it follows them."""
        joined = self._kinds.get(row.number) is not row.kind
        return int(row.kind), len(self._places) if joined else self._places[row.number]


def _hurts(row: ReplicaRow) -> tuple[int, float, float, int]:
    """Return the class, then the hottest KV blocks, the highest TTFT, and the number of the server."""
    return int(row.kind), -_known(row.kv), -_known(row.ttft_p90), row.number


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value
