"""The state of a run: everything read from its source, folded from updates."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from typing import TypeVar

import numpy as np

from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.scratch import Scratch
from servetop.analysis.series.tick_cache import ReadTicks
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.verdicts.anomalies import AnomalyDetector
from servetop.core.arrays import FloatArray
from servetop.core.events import Action, Command, LogLine, Note, RunEnd, StageChange
from servetop.core.interfaces.run_source import RunHeader, RunUpdate
from servetop.core.tick import TICK_SECONDS, LoadGauges
from servetop.tui.drawing.heat_map import BinnedHistograms
from servetop.tui.state.command_requests import CommandTarget
from servetop.tui.state.frame import Frame, View
from servetop.tui.state.replicas import ReplicaHistory
from servetop.tui.state.request_phases import preemptions_between
from servetop.tui.state.run_notes import RunNotes
from servetop.tui.state.stage_metrics import stage_metrics
from servetop.tui.state.steady_stages import SteadyStages

_Event = TypeVar("_Event", Note, StageChange, LogLine)

MOST_LOG_LINES = 50_000
"""Newer lines stay in memory; the recording has all of them."""
_OVERVIEW_BINS = 240
SERIES_BINS = 120
LIVE_TICKS = 960
"""Newest ticks of a live run that stay in memory: four minutes."""
CLOSED_TICKS = 14_400
"""Ticks of a finished recording that stay in memory: an hour, for immediate seeks."""
_RECENT_TICKS = 40
"""Ten seconds."""
_SHORTEST_SPAN = 30.0
"""Minimum length in seconds of a time axis that covers the whole run."""


class RunState:
    """A fold of updates, ordered by time. Ticks that left the memory are read again when they are needed."""

    def __init__(
        self,
        header: RunHeader,
        *,
        read: ReadTicks | None = None,
        keep: int = LIVE_TICKS,
        scratch: Scratch | None = None,
    ) -> None:
        """`read` returns ticks older than the newest `keep`; without it all ticks stay in memory.

        Columns of older ticks that every frame needs go to `scratch`.
        """
        self.history = TickHistory(read=read, scratch=scratch)
        self._keep = keep
        self.binned = BinnedHistograms(self.history)
        self.steady = SteadyStages(self.history)
        self.header = header
        self.replicas = ReplicaHistory(scratch)
        self.anomalies = AnomalyDetector(streamed=header.config.workload.stream)
        self.end: RunEnd | None = None
        self.stages: list[StageChange] = []
        self.run_notes = RunNotes()
        self.log: list[LogLine] = []
        self.commands: dict[int, Command] = {}
        self.requested: dict[Action, float] = {}
        """Values that were requested and not yet confirmed."""

    def fold(self, update: RunUpdate) -> bool:
        """Add an update; whether it contained anything."""
        self.history.extend(update.ticks)
        self.anomalies.update(self.history)
        self.anomalies.update_log(update.log_lines)
        self.replicas.fold(update.replica_samples)
        for command in update.commands:
            self.commands[command.id] = command
            if command.reply is not None and self.requested.get(command.action) == command.value:
                self.requested.pop(command.action, None)
        for stage in update.stages:
            if self.stages and self.stages[-1].at < stage.at:
                self.anomalies.stage_ended(self.stages[-1], until=stage.at, history=self.history)
            _extend(self.stages, [stage])
        self.run_notes.record(update.notes)
        _extend(self.log, update.log_lines)
        del self.log[:-MOST_LOG_LINES]
        self.header = update.header or self.header
        if update.end and not self.end and self.stages:
            self.anomalies.stage_ended(self.stages[-1], until=update.end.at, history=self.history)
        self.end = update.end or self.end
        self.history.evict(keep=self._keep)
        changed = (
            update.ticks,
            update.stages,
            update.notes,
            update.commands,
            update.log_lines,
            update.header,
            update.end,
        )
        return any(changed)

    @property
    def notes(self) -> Sequence[Note]:
        """All notes, in order of time."""
        return self.run_notes.all

    @property
    def edge(self) -> float:
        """The end of the recorded run, seconds."""
        ends = [self.history.ticks[-1].end] if self.history.ticks else [0.0]
        ends += [each[-1].at for each in (self.stages, self.notes, self.log) if each]
        return max(ends) if self.end is None else max(*ends, self.end.at)

    @property
    def target(self) -> CommandTarget:
        """The newest state of the load, which steering starts from, whatever time is shown."""
        newest = self.history.ticks[-1] if self.history.ticks else None
        sizes = [
            self.stages[-1].max_num_seqs if self.stages else None,
            newest.engine.max_num_seqs if newest and newest.engine else None,
            self.header.engine.max_num_seqs if self.header.engine else None,
        ]
        return CommandTarget(
            gauges=newest.client.gauges if newest else LoadGauges(),
            requested=self.requested,
            engine=self.header.engine,
            max_num_seqs=next((round(size) for size in sizes if size is not None), None),
            done_rate=self._done_rate(),
            boot_seconds=next((stage.at for stage in self.stages if stage.request_rate is not None), None),
        )

    def _done_rate(self) -> float:
        """Requests/s that completed during the last ten seconds."""
        recent = self.history.ticks[-_RECENT_TICKS:]
        return sum(tick.client.ok for tick in recent) / (len(recent) * TICK_SECONDS) if recent else 0.0

    def at(self, view: View, *, live: bool) -> Frame:
        """The frame at the view's playhead."""
        at = view.playhead.at
        shown = view.span or max(at, _SHORTEST_SPAN)
        end = self.end if self.end is not None and self.end.at <= at + TICK_SECONDS else None
        stats = live_stats(self.history, at, span=shown, columns=SERIES_BINS)
        pointed = None
        if view.cursor is not None:
            pointed = live_stats(self.history, min(view.cursor.at, at), span=shown, columns=SERIES_BINS)
        return Frame(
            stats=stats if pointed is None else replace(pointed, series=stats.series),
            pointed=pointed,
            header=self.header,
            view=view,
            live=live,
            edge=self.edge,
            stages=tuple(self.stages[: _count(self.stages, at)]),
            all_stages=tuple(self.stages),
            notes=tuple(self.notes[: _count(self.notes, at)]),
            all_notes=tuple(self.notes),
            anomalies=self.anomalies.all,
            commands=tuple(each for each in self.commands.values() if each.at <= at + TICK_SECONDS),
            log=self.log[: _count(self.log, at)],
            end=end,
            steady=self.steady.windows(
                self.stages, end=self.end.at if self.end else None, cooldown=self.header.config.cooldown
            ),
            preemptions=partial(preemptions_between, self.history),
            between=lambda start, until: live_stats(self.history, until, span=until - start, columns=SERIES_BINS),
            per_stage=cache(
                partial(stage_metrics, self.history, self.binned, tuple(self.stages), at, over=end is not None)
            ),
            heat=self.binned.over(view.metric, at=at, span=shown, columns=SERIES_BINS),
            replicas=lambda width: self.replicas.rows(
                self.header.engine, stats.at if pointed is None else pointed.at, width
            ),
            overview=overview(self.history, bins=_OVERVIEW_BINS),
            overview_until=self.history.ticks[-1].end if self.history.ticks else 0.0,
        )


def _extend(kept: list[_Event], new: Sequence[_Event]) -> None:
    if new:
        kept.extend(new)
        kept.sort(key=attrgetter("at"))


def _count(events: Sequence[_Event], at: float) -> int:
    """The number of events up to `at`."""
    return bisect.bisect_right(events, at + 1e-9, key=attrgetter("at"))


def overview(history: TickHistory, *, bins: int) -> FloatArray:
    """Output tokens/s from second 0 to the newest tick in at most `bins` bins; NaN in bins without ticks."""
    numbers, tokens = history.ticks.indexes, history.column("output_tokens")
    if not numbers:
        return tokens
    size = numbers[-1] + 1
    per_tick = np.full(size, np.nan)
    per_tick[np.array(numbers)] = tokens
    starts = np.arange(0, size, -(-size // bins))
    sums, known = (np.add.reduceat(each, starts) for each in (np.nan_to_num(per_tick), ~np.isnan(per_tick) * 1.0))
    rates: FloatArray = np.divide(sums, known * TICK_SECONDS, out=np.full(starts.size, np.nan), where=known > 0)
    return rates
