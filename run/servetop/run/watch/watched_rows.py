"""The state of every watched server, read from the growing recording of the watch as a dashboard reads it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from servetop.analysis.confounding.server_restarts import ServerRestarts
from servetop.analysis.engine_gauges import kv_usage
from servetop.analysis.fleet.replica_row import JUST_RESTARTED, ReplicaClass, ReplicaRow, class_of_verdict
from servetop.analysis.live_stats import watched_stats
from servetop.analysis.series.page_rates import WatchedHistory
from servetop.core.interfaces.run_source import RunUpdate
from servetop.recordings.read.reader import RecordingReader
from servetop.run.watch.addresses import WatchedAddress
from servetop.tui.state.fleet_state import LIVE_TICKS, FleetState
from servetop.tui.state.judged_replica import failed_until, overloaded_until, since_when
from servetop.tui.state.judged_run import JudgedRun


class _Servers(Protocol):
    def fold(self, update: RunUpdate) -> bool:
        """Add an update; whether there are new states."""
        ...

    def rows(self) -> tuple[float, Sequence[ReplicaRow]]:
        """Return a time, in seconds, and the state of every server then."""
        ...


class WatchedRows:
    """Follows a recording; to be opened, used and closed in one thread."""

    def __init__(self, recording: Path) -> None:
        self._reader = RecordingReader.open(recording)
        watch = self._reader.header.config.watch
        several = watch is not None and watch.several
        self._servers: _Servers = _Several() if several else _One(self._reader)

    def new(self) -> tuple[float, Sequence[ReplicaRow]] | None:
        """Return the newest states with their time; None if nothing was recorded since the last call."""
        return self._servers.rows() if self._servers.fold(self._reader.poll()) else None

    def close(self) -> None:
        """Close the recording."""
        self._reader.close()


class _Several:
    """The servers of a watch of several."""

    def __init__(self) -> None:
        self._fleet = FleetState()

    def fold(self, update: RunUpdate) -> bool:
        before = self._fleet.until
        self._fleet.fold(update)
        return self._fleet.until > before

    def rows(self) -> tuple[float, Sequence[ReplicaRow]]:
        return self._fleet.until, self._fleet.at(self._fleet.until).rows


class _One:
    """The server of a watch of one, in the form of one of several."""

    def __init__(self, reader: RecordingReader) -> None:
        self._reader = reader
        self._history = WatchedHistory()
        self._judged = JudgedRun(streamed=True, watched=True)
        self._restarts = ServerRestarts()
        self._address = WatchedAddress.parse(reader.header.config.engine.url or "")

    def fold(self, update: RunUpdate) -> bool:
        self._history.extend(update.ticks)
        self._judged.update(self._history, self._reader.header.engine, until=len(self._history))
        self._restarts.add(update.ticks, update.replica_samples, update.notes, update.engine_series)
        if len(self._history) > 2 * LIVE_TICKS:
            count = len(self._history) - LIVE_TICKS
            self._history.drop_first(count)
            self._judged.drop_first(count)
        return bool(update.ticks) and self._reader.header.engine is not None

    def rows(self) -> tuple[float, Sequence[ReplicaRow]]:
        at = self._history.ticks[-1].end
        stats = watched_stats(self._history, at)
        verdict = self._judged.verdict(stats, self._history, facts=self._reader.header.engine, stages=(), notes=())
        kind = class_of_verdict(verdict, kv=kv_usage(stats.engine))
        restarts = [each for each in self._restarts.times if at - JUST_RESTARTED < each <= at]
        if restarts and kind is not ReplicaClass.DEAD:
            kind = ReplicaClass.RESTARTED
        row = ReplicaRow(
            number=0,
            name=self._address.name,
            url=self._address.url,
            kind=kind,
            state=verdict.bottleneck.value,
            since=since_when(verdict, stats, self._judged.episodes),
            overloaded_until=overloaded_until(self._judged.episodes, at),
            failed_until=failed_until(self._judged.episodes, at),
            detail=", ".join(verdict.evidence),
            restarted_at=restarts[-1] if restarts else None,
        )
        return at, [row]
