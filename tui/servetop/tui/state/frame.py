"""Everything that panels draw at one instant of a run, and the view that selects it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from servetop.analysis.live_stats import LiveStats
from servetop.analysis.verdicts.anomalies import Anomaly
from servetop.analysis.verdicts.steady_state import SteadyWindow
from servetop.core.arrays import FloatArray
from servetop.core.events import Command, LogLine, Note, RequestRecord, RunEnd, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.tui.drawing.cursor import Cursor
from servetop.tui.drawing.text_runs import TextRow
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.stage_metrics import StageMetrics

MOST_REQUESTS = 400
"""Requests that are looked at together."""


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
    anomalies: tuple[Anomaly, ...] = ()
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
