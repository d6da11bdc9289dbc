"""The servers of a watch of several: a fold of updates, and the row of each at one time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.fleet.fleet_text import differences, fleet_line, skew_text, totals_text
from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.analysis.fleet.row_order import RowOrder
from servetop.analysis.fleet.slower_servers import SlowerServers
from servetop.analysis.series.client_columns import ClientColumns
from servetop.core.interfaces.replica_change import ReplicaChange
from servetop.core.interfaces.run_source import RunHeader, RunUpdate
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.core.merged.sample_rows import SampleRows
from servetop.core.merged.tick_rows import TickRows
from servetop.tui.state.judged_replica import JudgedReplica

_JUDGED_TICKS = ((8, 4), (20, 8))
"""Below each number of servers, the ticks that are judged together while a watch is live: judging one costs as much as
judging some, so of few servers it is one second, then two, ..."""
_JUDGED_OF_MANY = 12
"""... and of more three."""
LIVE_TICKS = 2400
"""Ticks of each server that stay in memory at least while a watch is live: ten minutes."""

_VERDICTS = {
    ReplicaClass.FAILING: Bottleneck.FAILING,
    ReplicaClass.DRAINING: Bottleneck.DRAINING,
    ReplicaClass.QUEUE: Bottleneck.WAITING,
    ReplicaClass.SLOW: Bottleneck.SLOWER,
    ReplicaClass.IDLE: Bottleneck.IDLE,
    ReplicaClass.UNKNOWN: Bottleneck.STARTING,
}
_Event = TypeVar("_Event", ReplicaChange, SeriesScrape)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFrame:
    """All servers at one time, what hurts first."""

    at: float
    rows: tuple[ReplicaRow, ...]

    @property
    def line(self) -> str:
        """How many serve, and which do not."""
        return fleet_line(self.rows)

    @property
    def verdict(self) -> Diagnosis:
        """The state of all under the verdict of the server that hurts most."""
        return Diagnosis(bottleneck=_verdict_of(self.rows), evidence=(self.line,))

    @property
    def totals(self) -> str:
        """Sums of all, and the worst."""
        return totals_text(self.rows)

    @property
    def skew(self) -> str:
        """The largest relative to the mean."""
        return skew_text(self.rows)


def _verdict_of(rows: Sequence[ReplicaRow]) -> Bottleneck:
    """Return the verdict of the server that hurts most; servers that only differ count as what they do.

    One that was restarted hurts less than any that is in trouble now.
    """
    if not rows:
        return Bottleneck.STARTING
    troubled = (row for row in rows if row.kind <= ReplicaClass.SLOW and row.kind is not ReplicaClass.RESTARTED)
    worst = next(troubled, rows[0])
    states = {row.state for row in rows}
    match worst.kind:
        case ReplicaClass.DEAD:
            return Bottleneck.NO_RESPONSE if worst.state == Bottleneck.NO_RESPONSE else Bottleneck.NO_METRICS
        case ReplicaClass.SATURATED:
            return Bottleneck.KV if worst.state == Bottleneck.KV else Bottleneck.BATCH
        case ReplicaClass.DIFFERS if Bottleneck.SERVING not in states:
            return Bottleneck.IDLE
        case _:
            return _VERDICTS.get(worst.kind, Bottleneck.SERVING)


def judged_ticks(servers: int) -> int:
    """Return how many ticks of some servers are judged together while a watch is live."""
    return next((ticks for below, ticks in _JUDGED_TICKS if servers < below), _JUDGED_OF_MANY)


class FleetState:
    """All servers that a watch has listed, by number."""

    def __init__(self, *, keep: int | None = LIVE_TICKS) -> None:
        """`keep`: ticks of each server that stay in memory; None keeps all, for a recording that has ended."""
        self._keep = keep
        self._replicas: dict[int, JudgedReplica] = {}
        self._pending = TickRows()
        self._order, self._slower = RowOrder(), SlowerServers()
        self._shown: FleetFrame | None = None
        self.until = 0.0
        """The end of the last tick that is judged."""

    @classmethod
    def of(cls, header: RunHeader, *, finished: bool) -> FleetState | None:
        """Return the state of a run's servers; None unless it is a watch of several."""
        watch = header.config.watch
        return cls(keep=None if finished else LIVE_TICKS) if watch is not None and watch.several else None

    def fold(self, update: RunUpdate) -> None:
        """Add an update; ticks that arrive before their samples wait for them."""
        self._pending.extend(update.ticks)
        if update.more:
            return
        samples, changes = SampleRows(update.replica_samples).by_replica(), _by_replica(update.replica_changes)
        series = _by_replica([each for each in update.engine_series if each.replica is not None])
        for number in sorted({*samples, *changes, *series}):
            if number not in self._replicas:
                self._replicas[number] = JudgedReplica(number, keep=self._keep)
            self._replicas[number].add(samples.get(number, ()), changes.get(number, ()), series.get(number, ()))
        if len(self._pending) >= judged_ticks(len(self._replicas)) or update.end is not None:
            self._judge()

    def _judge(self) -> None:
        plain = self._pending and not self._pending.merged
        clients = ClientColumns.of([tick.client for tick in self._pending]) if plain else None
        for each in self._replicas.values():
            each.extend(self._pending, clients)
        if self._pending:
            self.until = self._pending[-1].end
        self._pending, self._shown = TickRows(), None

    @property
    def names(self) -> frozenset[str]:
        """All names that servers have had."""
        return frozenset(change.name for each in self._replicas.values() for change in each.events.changes)

    def replica(self, number: int) -> JudgedReplica | None:
        """Return a server by its number; None if nothing is known about it."""
        return self._replicas.get(number)

    def at(self, at: float) -> FleetFrame:
        """Return all servers at a time, at most that of the last judged tick, in their order."""
        at = min(at, self.until)
        if self._shown is None or self._shown.at != at:
            self._shown = FleetFrame(at=at, rows=tuple(self._order.ordered(self._rows(at), at)))
        return self._shown

    def states_at(self, at: float) -> Sequence[ReplicaRow]:
        """Return the state of each server at a time, in no order and without its latencies, which takes less time."""
        return self._rows(min(at, self.until), latencies=False)

    def _rows(self, at: float, *, latencies: bool = True) -> list[ReplicaRow]:
        facts = {number: found for number, each in self._replicas.items() if (found := each.facts_at(at)) is not None}
        differs = differences(facts)
        compared = [paced for each in self._replicas.values() if (paced := each.compared(at)) is not None]
        slower = self._slower.now(compared, at)
        rows = [
            each.row(at, differs=differs.get(number, ""), slower=slower.get(number), latencies=latencies)
            for number, each in self._replicas.items()
        ]
        return [row for row in rows if row.name]


def _by_replica(events: Iterable[_Event]) -> Mapping[int, Sequence[_Event]]:
    """Return the events of each server, in their order."""
    found: dict[int, list[_Event]] = {}
    for each in events:
        found.setdefault(each.replica or 0, []).append(each)
    return found
