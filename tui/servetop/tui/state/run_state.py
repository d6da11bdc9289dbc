"""Everything read from a run up to now, and the view of one instant of it that panels draw."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from operator import attrgetter
from typing import TypeVar

from servetop.analysis.live_stats import LiveStats, live_stats
from servetop.analysis.series.scratch import Scratch
from servetop.analysis.series.tick_cache import ReadTicks
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.verdicts.anomalies import Anomaly, AnomalyDetector
from servetop.analysis.verdicts.steady_state import SteadyWindow
from servetop.core.arrays import FloatArray
from servetop.core.events import Action, Command, LogLine, Note, RequestRecord, RunEnd, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import EngineFacts, RunHeader, RunUpdate
from servetop.core.tick import TICK_SECONDS, LoadGauges
from servetop.tui.drawing.cursor import Cursor
from servetop.tui.drawing.heat_map import BinnedHistograms
from servetop.tui.drawing.text_runs import TextRow
from servetop.tui.state.command_requests import CommandTarget
from servetop.tui.state.overview import overview
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.replicas import ReplicaHistory
from servetop.tui.state.run_notes import RunNotes
from servetop.tui.state.stage_metrics import StageMetrics, stage_figures
from servetop.tui.state.steady_stages import SteadyStages

_Event = TypeVar("_Event", Note, StageChange, LogLine)

MOST_LOG_LINES = 50_000
"""Older ones are forgotten here; the recording has them all."""
_OVERVIEW_BINS = 240
SERIES_BINS = 120
MOST_REQUESTS = 400
"""Requests that are looked at together."""
LIVE_TICKS = 960
"""Newest ticks of a run that goes on that stay in memory: four minutes."""
CLOSED_TICKS = 14_400
"""Of a recording that does not grow: an hour, to go anywhere in it at once."""
_RECENT_TICKS = 40
"""Ten seconds."""
_SHORTEST_SPAN = 30.0
"""Seconds that the time axis covers at least, when it covers the whole run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the viewer has chosen to see."""

    playhead: Playhead
    span: float = 120.0
    """Seconds on the time axis; 0 is all of the run."""
    metric: str = "ttft"
    """The latency that is charted, one of `core.stats.LATENCIES`."""
    heat: bool = False
    """The heat map stands in the place of the latency chart, where there is no room for both."""
    message: str = ""
    """What the app itself has to say about the last key."""
    cursor: Cursor | None = None
    """The instant on the time axis whose figures are shown; None for the playhead's."""


def no_requests(start: float, until: float) -> Sequence[RequestRecord]:  # noqa: ARG001
    """What there is to read between two instants when nothing can be read."""
    return ()


def no_replicas(width: int) -> Sequence[TextRow]:  # noqa: ARG001
    """What there is to show of replicas where there is one server."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """What there is to see of a run at one instant, the playhead's; nothing in it is later, except where it says so."""

    stats: LiveStats
    """Figures of the cursor's instant where there is one, else of the playhead's; its series end at the playhead."""
    pointed: LiveStats | None = None
    """The cursor's figures with series that end at the cursor; None without one."""
    header: RunHeader
    view: View
    live: bool
    """The run goes on, now (not at the instant shown)."""
    read_only: bool = False
    """Keys do not steer it."""
    edge: float
    """The newest instant there is, seconds."""
    stages: tuple[StageChange, ...] = ()
    all_stages: tuple[StageChange, ...] = ()
    """Of the whole run, for the time line."""
    all_notes: tuple[Note, ...] = ()
    """Of the whole run, for the time line."""
    notes: tuple[Note, ...] = ()
    causes: tuple[Anomaly, ...] = ()
    """Of the whole run, for the time line."""
    commands: tuple[Command, ...] = ()
    log: Sequence[LogLine] = ()
    end: RunEnd | None = None
    steady: Mapping[int, SteadyWindow] = field(default_factory=dict)
    """Of the whole run, for the time line: by stage that is over, its steady part or why it has none."""
    heat: Sequence[LogHistogram] = ()
    """Of the charted latency, one for each bin of `stats.series`."""
    requests: Callable[[float, float], Sequence[RequestRecord]] = no_requests
    """Reads those under way between two instants that have ended, by due time; the last `MOST_REQUESTS` of them."""
    between: Callable[[float, float], LiveStats]
    """Figures at the second of two instants, with series that begin at the first."""
    per_stage: Callable[[], Sequence[StageMetrics]] = list
    """Worked out when first asked for: only some screens compare stages."""
    replicas: Callable[[int], Sequence[TextRow]] = no_replicas
    """Rows of a table, so many cells wide, of several servers; none where there is one."""
    overview: FloatArray
    """Output tokens/s in equal bins from second 0 to the end of the newest tick; shape (bins,)."""
    overview_until: float
    """End of the last of these bins, seconds."""

    @property
    def cursor(self) -> float | None:
        """The cursor's instant, seconds; None without one."""
        return None if self.pointed is None else self.pointed.at

    @property
    def stage(self) -> StageChange | None:
        """The stage in force."""
        return self.stages[-1] if self.stages else None

    @property
    def engine(self) -> EngineFacts | None:
        """The engine's facts, once it answers."""
        return self.header.engine

    @property
    def engine_title(self) -> str:
        """The engine's name as its makers write it, as far as it is known."""
        return self.header.engine.title if self.header.engine else self.header.config.engine.name

    @property
    def booting(self) -> bool:
        """No stage with a load has begun."""
        return not any(stage.request_rate is not None for stage in self.stages)

    @property
    def pending(self) -> tuple[Command, ...]:
        """Commands that wait for their reply, oldest first; a run that has ended answers none."""
        return tuple(command for command in self.commands if command.reply is None and self.live)

    @property
    def window(self) -> tuple[float, float]:
        """Left and right edge of the time axis that all charts share, seconds."""
        times = self.stats.series.times
        right = float(times[-1]) if times.size else self.view.playhead.at
        return (right - self.stats.span, right)


class RunState:
    """A fold of updates. Everything is there in order of time; old ticks are read again where they are looked at."""

    def __init__(
        self,
        header: RunHeader,
        *,
        read: ReadTicks | None = None,
        keep: int = LIVE_TICKS,
        scratch: Scratch | None = None,
    ) -> None:
        """`read` gives older ticks than the newest `keep` again; without it all of them stay in memory.

        What is drawn of older ones all the time goes to `scratch`.
        """
        self.history = TickHistory(read=read, scratch=scratch)
        self._keep = keep
        self.binned = BinnedHistograms(self.history)
        self.steady = SteadyStages(self.history)
        self.header = header
        self.replicas = ReplicaHistory(scratch)
        self.causes = AnomalyDetector(streamed=header.config.workload.stream)
        self.end: RunEnd | None = None
        self.stages: list[StageChange] = []
        self.noted = RunNotes()
        self.log: list[LogLine] = []
        self.commands: dict[int, Command] = {}
        self.wished: dict[Action, float] = {}
        """Values asked for and not answered yet."""

    def fold(self, update: RunUpdate) -> bool:
        """Take in what is new; whether there was anything."""
        self.history.extend(update.ticks)
        self.causes.look(self.history)
        self.causes.read(update.log_lines)
        self.replicas.fold(update.replica_samples)
        for command in update.commands:
            self.commands[command.id] = command
            if command.reply is not None and self.wished.get(command.action) == command.value:
                self.wished.pop(command.action, None)
        for stage in update.stages:
            if self.stages and self.stages[-1].at < stage.at:
                self.causes.stage_ended(self.stages[-1], until=stage.at, history=self.history)
            _extend(self.stages, [stage])
        self.noted.record(update.notes)
        _extend(self.log, update.log_lines)
        del self.log[:-MOST_LOG_LINES]
        self.header = update.header or self.header
        if update.end and not self.end and self.stages:
            self.causes.stage_ended(self.stages[-1], until=update.end.at, history=self.history)
        self.end = update.end or self.end
        self.history.put_away(keep=self._keep)
        news = (update.ticks, update.stages, update.notes, update.commands, update.log_lines, update.header, update.end)
        return any(news)

    @property
    def notes(self) -> Sequence[Note]:
        """All, in order of time."""
        return self.noted.all

    @property
    def edge(self) -> float:
        """The end of what there is to see, seconds."""
        ends = [self.history.ticks[-1].end] if self.history.ticks else [0.0]
        ends += [each[-1].at for each in (self.stages, self.notes, self.log) if each]
        return max(ends) if self.end is None else max(*ends, self.end.at)

    @property
    def target(self) -> CommandTarget:
        """What steering starts from: the newest state of the load, whatever instant is shown."""
        newest = self.history.ticks[-1] if self.history.ticks else None
        sizes = [
            self.stages[-1].max_num_seqs if self.stages else None,
            newest.engine.max_num_seqs if newest and newest.engine else None,
            self.header.engine.max_num_seqs if self.header.engine else None,
        ]
        return CommandTarget(
            gauges=newest.client.gauges if newest else LoadGauges(),
            wished=self.wished,
            engine=self.header.engine,
            max_num_seqs=next((round(size) for size in sizes if size is not None), None),
            done_rate=self._done_rate(),
            boot_seconds=next((stage.at for stage in self.stages if stage.request_rate is not None), None),
        )

    def _done_rate(self) -> float:
        """Requests/s that ended well in the last seconds."""
        recent = self.history.ticks[-_RECENT_TICKS:]
        return sum(tick.client.ok for tick in recent) / (len(recent) * TICK_SECONDS) if recent else 0.0

    def at(self, view: View, *, live: bool) -> Frame:
        """The run as of the view's playhead."""
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
            causes=self.causes.all,
            commands=tuple(each for each in self.commands.values() if each.at <= at + TICK_SECONDS),
            log=self.log[: _count(self.log, at)],
            end=end,
            steady=self.steady.windows(
                self.stages, end=self.end.at if self.end else None, cooldown=self.header.config.cooldown
            ),
            between=lambda start, until: live_stats(self.history, until, span=until - start, columns=SERIES_BINS),
            per_stage=cache(
                partial(stage_figures, self.history, self.binned, tuple(self.stages), at, over=end is not None)
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
    """How many events had happened by `at`."""
    return bisect.bisect_right(events, at + 1e-9, key=attrgetter("at"))
