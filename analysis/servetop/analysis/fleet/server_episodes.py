"""Overloads and outages of watched servers, each with its begin and end, from the state of every server over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.fleet.replica_row import NOT_READY, ReplicaClass, ReplicaRow
from servetop.analysis.fleet.slower_servers import SLOWER
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line

SETTLING = 2.0
"""Seconds for which a state has to last before it counts."""
NO_RESPONSE, RESTARTED = Bottleneck.NO_RESPONSE.value, "restarted"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeChange:
    """An overload or outage of one server begins or ends."""

    begins: bool
    kind: str
    """`failing`, `KV-bound`, `batch-bound`, `requests wait`, `slower than the others`, `not ready`, `no response` or
    `restarted`.
    """
    number: int
    """The number of the server in its watch."""
    name: str
    url: str
    since: float
    """When it began, run time in seconds."""
    text: str
    """What is wrong, or after the end for how long it was and what the server does now, in one line."""


class ServerEpisodes:
    """Follows the states of all servers; `changes` returns what began and ended."""

    def __init__(self) -> None:
        self._active: dict[int, EpisodeChange] = {}
        self._changing: dict[int, tuple[str, float]] = {}
        """The other kind that each server has at the moment, and the time at which it was first seen."""

    def changes(self, rows: Iterable[ReplicaRow], at: float) -> list[EpisodeChange]:
        """Return the changes that are certain at a time: each end before the begin of the next.

        A server of which the state is not known for the moment keeps the last one.
        """
        return [change for row in rows for change in self._of(row, at)]

    def _of(self, row: ReplicaRow, at: float) -> list[EpisodeChange]:
        active, kind = self._active.get(row.number), kind_of(row)
        if row.kind is ReplicaClass.UNKNOWN or kind == ("" if active is None else active.kind):
            self._changing.pop(row.number, None)
            return []
        other, seen = self._changing.get(row.number, ("", at))
        seen = seen if other == kind else at
        self._changing[row.number] = (kind, seen)
        if at - seen < SETTLING:
            return []
        del self._changing[row.number]
        ended = [] if active is None else [_ended(active, row, seen)]
        if not kind:
            self._active.pop(row.number, None)
            return ended
        self._active[row.number] = _begun(row, kind, seen)
        return [*ended, self._active[row.number]]


def kind_of(row: ReplicaRow) -> str:
    """Return what is wrong with a server; empty if nothing is, or if that is not known."""
    match row.kind:
        case ReplicaClass.DEAD:
            return NO_RESPONSE
        case ReplicaClass.RESTARTED:
            return RESTARTED
        case ReplicaClass.DRAINING:
            return NOT_READY
        case ReplicaClass.FAILING | ReplicaClass.SATURATED | ReplicaClass.QUEUE | ReplicaClass.SLOW:
            return row.state
        case _:
            return ""


def _begun(row: ReplicaRow, kind: str, seen: float) -> EpisodeChange:
    since = row.restarted_at if kind == RESTARTED and row.restarted_at is not None else row.since
    between = " " if row.detail.startswith("since ") else ": "
    text = f"{row.state}{between}{row.detail}" if row.detail else row.state
    return EpisodeChange(
        begins=True,
        kind=kind,
        number=row.number,
        name=row.name,
        url=row.url,
        since=seen if math.isnan(since) else since,
        text=sanitize_line(f"{row.name}: {f'{RESTARTED}, now {row.state}' if kind == RESTARTED else text}"),
    )


def _ended(active: EpisodeChange, row: ReplicaRow, seen: float) -> EpisodeChange:
    now = "not listed any more" if row.kind is ReplicaClass.REMOVED else f"now {kind_of(row) or row.state}"
    known = row.failed_until if active.kind == Bottleneck.FAILING else row.overloaded_until
    until = seen if active.kind in (NO_RESPONSE, RESTARTED, NOT_READY, SLOWER) else known
    lasted = formats.clock(max((until if active.since < until <= seen else seen) - active.since, 0.0))
    return EpisodeChange(
        begins=False,
        kind=active.kind,
        number=row.number,
        name=row.name,
        url=row.url,
        since=active.since,
        text=sanitize_line(f"{row.name}: {active.kind} for {lasted}, {now}"),
    )
