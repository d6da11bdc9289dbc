"""The state of a run: everything read from its source, folded from updates."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from operator import attrgetter
from typing import TypeVar

from servetop.analysis.cells.attempts import StageHistory
from servetop.analysis.diagnosis.diagnosis import Diagnosis
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.exported.gpu_peaks import engine_gpus
from servetop.analysis.live_stats import LiveStats, engine_stats, live_stats
from servetop.analysis.series.page_rates import WatchedHistory
from servetop.analysis.series.scratch import Scratch
from servetop.analysis.series.stats_series import CHARTED
from servetop.analysis.series.tick_cache import ReadTicks
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.story.story import Story
from servetop.analysis.summary.measured_sweep import is_sweep
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.events import Action, Command, LogLine, Note, RunEnd, StageChange
from servetop.core.interfaces.run_source import RunHeader, RunUpdate
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.tick import TICK_SECONDS, LoadGauges
from servetop.tui.drawing.heat_map import BinnedHistograms
from servetop.tui.state.command_requests import CommandTarget
from servetop.tui.state.engine_page import EngineMetricsHistory, EnginePage
from servetop.tui.state.engine_peaks import EnginePeaks, engine_peaks
from servetop.tui.state.fleet_state import FleetState
from servetop.tui.state.frame import Frame, View
from servetop.tui.state.judged_run import JudgedRun
from servetop.tui.state.replicas import ReplicaHistory
from servetop.tui.state.request_phases import preemptions_between
from servetop.tui.state.run_notes import RunNotes
from servetop.tui.state.run_overview import overview
from servetop.tui.state.search_progress import SearchHistory
from servetop.tui.state.stage_metrics import stage_metrics
from servetop.tui.state.steady_stages import SteadyStages
from servetop.tui.state.time_axis import TimeAxis, time_axis_at

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
        self.history = (TickHistory if header.config.watch is None else WatchedHistory)(read=read, scratch=scratch)
        self._keep = keep
        self.binned = BinnedHistograms(self.history)
        self.steady = SteadyStages(self.history)
        self.header = header
        self.replicas = ReplicaHistory(scratch)
        config, scheduled = header.config, header.is_scheduled_import
        self.judged = JudgedRun(streamed=config.workload.stream, watched=config.watch is not None, scheduled=scheduled)
        self.fleet = FleetState.of(header, finished=keep > LIVE_TICKS)
        self.engine_metrics = EngineMetricsHistory(scratch)
        self.end: RunEnd | None = None
        self.stages: list[StageChange] = []
        self.skipped: list[SkippedCell] = []
        self.run_notes = RunNotes()
        self.search = SearchHistory(header.config.search)
        self.log: list[LogLine] = []
        self.commands: dict[int, Command] = {}
        self.requested: dict[Action, float] = {}
        """Values that were requested and not yet confirmed."""
        self.sweep: SweepVerdict | None = None
        """The verdict of a sweep with the exact figures of its cells, read at its end, or of its cells so far."""
        self.awaits_sweep = False
        """Whether `sweep` is still to be set if the run is a sweep: its story waits for it."""
        self._peaks_of = lru_cache(maxsize=1)(self._peaks)

    def fold(self, update: RunUpdate) -> bool:
        """Add an update; whether it contained anything."""
        self.history.extend(update.ticks)
        if self.fleet is None:
            self.replicas.fold(update.replica_samples)
        else:
            self.fleet.fold(update)
        self.engine_metrics.fold([each for each in update.engine_series if each.replica is None])
        for command in update.commands:
            self.commands[command.id] = command
            if command.reply is not None and self.requested.get(command.action) == command.value:
                self.requested.pop(command.action, None)
        _extend(self.stages, update.stages)
        self.skipped += update.skipped
        self.run_notes.record(update.notes)
        self.search.fold(update.search_states)
        _extend(self.log, update.log_lines)
        del self.log[:-MOST_LOG_LINES]
        self.header = update.header or self.header
        self.search.searched = self.header.config.search
        judging = not self.judged.complete
        leaving = len(self.history) - self._keep  # they would have to be read again to be judged later
        until = leaving if update.more else None
        self.judged.update(self.history, self.header.engine, update.log_lines, stages=self.stages, until=until)
        self.end = update.end or self.end
        self.history.evict(keep=self._keep)
        rows = update.ticks, update.stages, update.notes, update.commands, update.log_lines, update.search_states
        return any((*rows, update.header, update.end, judging))

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
        return CommandTarget(
            gauges=newest.client.gauges if newest else LoadGauges(),
            requested=self.requested,
            engine=self.header.engine,
            max_num_seqs=self._batch_size(),
            done_rate=self._done_rate(),
            boot_seconds=self.load_at,
        )

    @property
    def load_at(self) -> float | None:
        """The start of the load, seconds; None before it starts."""
        return next((stage.at for stage in self.stages if stage.request_rate is not None), None)

    @property
    def record(self) -> RunRecord:
        """The whole run, for its story."""
        return RunRecord(
            header=self.header,
            history=self.history,
            episodes=self.judged.episodes,
            stages=tuple(self.stages),
            notes=self.notes,
            end=self.end,
        )

    @property
    def _rows(self) -> StageHistory:
        """The rows by which attempts at cells are judged, without the tallies of their requests."""
        return StageHistory(
            stages=tuple(self.stages),
            tallies={},
            notes=self.notes,
            commands=tuple(self.commands.values()),
            end=self.end,
            max_failures=self.header.config.max_failures,
        )

    def _batch_size(self) -> int | None:
        """The batch size in force: of the newest sample, or of the engine's facts if a later command changed it."""
        changes = [each for each in self.commands.values() if each.action is Action.SET_MAX_NUM_SEQS]
        changed_at = max((each.applied_at for each in changes if each.applied_at is not None), default=-math.inf)
        sample = self.history.ticks[-1].engine if self.history.ticks else None
        sizes = [
            sample.max_num_seqs if sample and sample.scrape_start >= changed_at else None,
            self.header.engine.max_num_seqs if self.header.engine else None,
            self.stages[-1].max_num_seqs if self.stages else None,
        ]
        return next((round(size) for size in sizes if size is not None), None)

    def _done_rate(self) -> float:
        """Requests/s that completed during the last ten seconds."""
        recent = self.history.ticks[-_RECENT_TICKS:]
        return sum(tick.client.ok for tick in recent) / (len(recent) * TICK_SECONDS) if recent else 0.0

    def _end_at(self, at: float) -> RunEnd | None:
        """Return the end of the run, if a playhead at that time has reached it."""
        return self.end if self.end is not None and self.end.at <= at + TICK_SECONDS else None

    def story_at(self, at: float) -> Story | None:
        """Return the story of the run at its end; None before, and until all of it is judged."""
        waits = self._end_at(at) is None or (self.awaits_sweep and is_sweep(self.header.config, self.stages))
        return None if waits else self.judged.story(self.record, self.sweep, replicas=self.replicas.samples)

    def axis(self, view: View) -> TimeAxis:
        """Return the time axis at the view's playhead."""
        return time_axis_at(view.playhead.at, selected=view.span, stages=self.stages)

    def at(self, view: View, *, live: bool) -> Frame:
        """Return the frame at the view's playhead."""
        at = view.playhead.at
        axis, end = self.axis(view), self._end_at(at)
        shown = axis.span
        stats_at = partial(live_stats, self.history, columns=SERIES_BINS, objectives=self.header.config.goodput)
        stats = stats_at(at, span=shown)
        pointed = None if view.cursor is None else stats_at(min(view.cursor.at, at), span=shown)
        frame = Frame(
            stats=stats if pointed is None else replace(pointed, series=stats.series),
            pointed=pointed,
            header=self.header,
            view=view,
            axis=axis,
            live=live,
            edge=self.edge,
            episodes=self.judged.episodes,
            verdict=self.verdict(stats if pointed is None else pointed),
            story=self.story_at(at),
            sweep=None if end is None else self.sweep,
            peaks=self._peaks_of(len(self.history)) if end is not None and pointed is None else None,
            end=end,
            steady=self.steady.windows(
                self.stages, end=self.end.at if self.end else None, cooldown=self.header.config.cooldown
            ),
            preemptions=partial(preemptions_between, self.history),
            engine_between=self._engine_between,
            per_stage=cache(partial(stage_metrics, self.history, self.binned, self._rows, at, over=end is not None)),
            heat=self.binned.over(CHARTED.get(view.metric, view.metric), at=at, span=shown, columns=SERIES_BINS),
            replicas=partial(self.replicas.rows, self.header.engine, (pointed or stats).at),
            engine_page=self._engine_page(pointed or stats, until=at, span=min(shown, at)),
            overview=overview(self.history, bins=_OVERVIEW_BINS),
            overview_until=self.history.ticks[-1].end if self.history.ticks else 0.0,
        )
        return self._with_events(frame, at)

    def _with_events(self, frame: Frame, at: float) -> Frame:
        """Return the frame with its stages, notes, commands and log lines."""
        known = at + TICK_SECONDS
        stages, notes = self.stages[: _count(self.stages, at)], self.notes[: _count(self.notes, at)]
        return replace(
            frame,
            stages=tuple(stages),
            search=self.search.at(known, stages=stages, notes=notes),
            all_stages=tuple(self.stages),
            skipped=tuple(each for each in self.skipped if each.at <= at + 1e-9),
            notes=tuple(notes),
            all_notes=tuple(self.notes),
            commands=tuple(_as_known_at(each, known) for each in self.commands.values() if each.at <= known),
            log=self.log[: _count(self.log, at)],
        )

    def _engine_between(self, start: float, until: float) -> LiveStats:
        return engine_stats(self.history, until, span=until - start, columns=SERIES_BINS)

    def _peaks(self, ticks: int) -> EnginePeaks:  # noqa: ARG002 - computed again after more ticks
        age = 0.0 if self.header.engine is None else self.header.engine.page_age
        return engine_peaks(self.history, self.judged.episodes, stages=self.stages, page_age=age)

    def verdict(self, stats: LiveStats) -> Diagnosis:
        """Return the verdict at the time of the statistics."""
        if self.fleet is not None and self.header.engine is not None:
            return self.fleet.at(stats.at).verdict
        stages, notes = self.stages[: _count(self.stages, stats.at)], self.notes[: _count(self.notes, stats.at)]
        facts, replicas = self.header.engine, self.replicas.newest(stats.at)
        return self.judged.verdict(stats, self.history, facts=facts, stages=stages, notes=notes, replicas=replicas)

    def _engine_page(self, stats: LiveStats, *, until: float, span: float) -> Callable[[int], EnginePage]:
        page, gpus = self.engine_metrics.page, engine_gpus(stats.gpus)
        return cache(partial(page, self.header, stats.at, until=until, span=span, gpus=gpus))


def _extend(kept: list[_Event], new: Sequence[_Event]) -> None:
    if new:
        kept.extend(new)
        kept.sort(key=attrgetter("at"))


def _as_known_at(command: Command, at: float) -> Command:
    """Return the command without its reply at a time before it was applied, as during a restart of the engine."""
    applied = command.applied_at is None or command.applied_at <= at
    return command if applied else replace(command, applied_at=None, reply=None)


def _count(events: Sequence[_Event], at: float) -> int:
    """Return the number of events up to `at`."""
    return bisect.bisect_right(events, at + 1e-9, key=attrgetter("at"))
