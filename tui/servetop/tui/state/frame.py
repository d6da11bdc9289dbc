"""A frame: everything that panels draw at one time of a run, and the view that selects it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from servetop.analysis.diagnosis.diagnosis import Diagnosis
from servetop.analysis.diagnosis.episode import Episode
from servetop.analysis.fleet.replica_row import ReplicaRow
from servetop.analysis.live_stats import LiveStats
from servetop.analysis.story.story import Story
from servetop.analysis.sweep.cell_checks import CellChecks
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.analysis.trust.steady_state import SteadyWindow
from servetop.core.arrays import FloatArray
from servetop.core.events import Command, LogLine, Note, RequestRecord, RunEnd, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.tui.drawing.cursor import Cursor
from servetop.tui.drawing.text_runs import TextRow
from servetop.tui.state.baseline import Baseline
from servetop.tui.state.comparison_table import ComparisonTable
from servetop.tui.state.engine_page import EnginePage
from servetop.tui.state.engine_peaks import EnginePeaks
from servetop.tui.state.fleet_state import FleetFrame
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.request_phases import Preemptions, unknown_preemptions
from servetop.tui.state.search_progress import SearchProgress
from servetop.tui.state.stage_metrics import StageMetrics
from servetop.tui.state.time_axis import TimeAxis

DEFAULT_SPAN = 120.0
"""Length of the time axis in seconds, until the user selects another or the whole run is shown."""
MOST_REQUESTS = 400
"""Requests read for one frame, at most, unless the panel needs more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The user's choices: position, time axis, metric, cursor."""

    playhead: Playhead
    span: float = DEFAULT_SPAN
    """Length of the time axis in seconds once the run is that long; 0 is the whole run."""
    zoomed: bool = False
    """Whether the user selected the length; until then it changes with jumps to the end of a run and back."""
    metric: str = "ttft"
    """The latency metric shown, one of `live_stats.LATENCIES`."""
    goodput: bool = False
    """Show goodput first instead of the latency on the screen of the sweep."""
    heat: bool = False
    """Show the heat map instead of the latency chart on screens that have no room for both."""
    curves: bool = False
    """Show distributions as cumulative curves instead of ridges."""
    message: str = ""
    """The app's message on the last key."""
    cursor: Cursor | None = None
    """The time on the axis whose values are shown; None shows those of the playhead."""
    baseline_shown: bool = True
    """Show the baseline's lines and values beside those of the run."""
    story_line: int = 0
    """The selected line of the run's story, from 0."""
    selected: int | None = None
    """Number of the selected one of several watched servers; None selects the one that hurts most."""
    opened: int | None = None
    """Number of the watched server that is shown alone; None shows all."""
    story_hidden: bool = False
    """The user closed the story; it is shown again when the end is reached again."""


class ReadRequests(Protocol):
    """Reads finished requests that were in flight between two times, by due time; the last `most` of them."""

    def __call__(self, start: float, until: float, *, most: int = MOST_REQUESTS) -> Sequence[RequestRecord]: ...


def no_requests(start: float, until: float, *, most: int = MOST_REQUESTS) -> Sequence[RequestRecord]:  # noqa: ARG001
    """Return no requests: the default for frames without a source."""
    return ()


def none_in_flight() -> Sequence[RequestInFlight]:
    """Return no requests: the default for frames without a source."""
    return ()


def no_replicas(width: int) -> Sequence[TextRow]:  # noqa: ARG001
    """Return no rows: the default for runs with one server."""
    return ()


def no_engine_page(cells: int) -> EnginePage:  # noqa: ARG001
    """Return an empty page: the default for frames without a run."""
    return EnginePage()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """A run as of the playhead. No field is later than that unless its description states otherwise."""

    stats: LiveStats
    """Values at the cursor if it is shown, else at the playhead; the series end at the playhead."""
    pointed: LiveStats | None = None
    """Values at the cursor with series that end there; None without a cursor."""
    header: RunHeader
    view: View
    axis: TimeAxis
    """The time axis before it is aligned to the series; `window` has its edges."""
    live: bool
    """Whether the run is live now, whatever time is shown."""
    read_only: bool = False
    """Whether the steering keys are disabled."""
    edge: float
    """The end of the recorded run, seconds."""
    stages: tuple[StageChange, ...] = ()
    all_stages: tuple[StageChange, ...] = ()
    skipped: tuple[SkippedCell, ...] = ()
    """Cells of a sweep that are not measured because their row has ended."""
    """Stages of the whole run, for the timeline."""
    all_notes: tuple[Note, ...] = ()
    """Notes of the whole run, for the timeline."""
    notes: tuple[Note, ...] = ()
    episodes: tuple[Episode, ...] = ()
    """Episodes of the whole run, for the timeline."""
    verdict: Diagnosis
    """The verdict at the cursor if it is shown, else at the playhead."""
    story: Story | None = None
    """The story of the run, once it has ended at the playhead and all of it is judged."""
    sweep: SweepVerdict | None = None
    """The verdict of a sweep with the exact figures of its cells, once it has ended at the playhead and is read."""
    search: SearchProgress | None = None
    """What a search knew by then; None for another run."""
    checks: CellChecks | None = None
    """Whether the cells of a sweep keep their thresholds, of all that are read, also later than the playhead."""
    peaks: EnginePeaks | None = None
    """The run's largest values, once it has ended at the playhead; None before, and with a cursor."""
    commands: tuple[Command, ...] = ()
    log: Sequence[LogLine] = ()
    end: RunEnd | None = None
    steady: Mapping[int, SteadyWindow] = field(default_factory=dict)
    """Steady windows of all finished stages by index, for the timeline; a window without a start gives the reason."""
    heat: Sequence[LogHistogram] = ()
    """Histograms of the charted latency (TTFT from due), one per bin of `stats.series`."""
    requests: ReadRequests = no_requests
    in_flight: Callable[[], Sequence[RequestInFlight]] = none_in_flight
    """Reads the requests of a live run that have not ended, as of a second ago."""
    preemptions: Preemptions = unknown_preemptions
    """Returns the engine's preemptions between two times."""
    engine_between: Callable[[float, float], LiveStats]
    """Returns `engine_stats` at the second of two times, with series that start at the first."""
    per_stage: Callable[[], Sequence[StageMetrics]] = list
    """Compares the stages; computed on the first call, because only some screens need it."""
    fleet: FleetFrame | None = None
    """The servers of a watch of several; None if one of them is opened, and for any other run."""
    selected: ReplicaRow | None = None
    """The selected one of them, which the engine page shows."""
    server: str = ""
    """The name of the server that is opened."""
    replicas: Callable[[int], Sequence[TextRow]] = no_replicas
    """Returns the table of replicas for a width in cells; no rows for a single server."""
    engine_page: Callable[[int], EnginePage] = no_engine_page
    """Returns the metrics that no panel shows, with trends for that many cells; only one screen needs them."""
    against: bool = False
    """Whether the run is compared with another one, which may not be read yet."""
    baseline: Baseline | None = None
    """The run that this one is compared with; None without one, and until it is read."""
    run_name: str = ""
    """The name of the run's file."""
    comparison: ComparisonTable = ComparisonTable()
    """The comparison with the baseline."""
    overview: FloatArray
    """Output tokens/s in equal bins from second 0 to the end of the newest tick; shape (bins,)."""
    overview_until: float
    """End of the last bin of `overview`, seconds."""

    @property
    def cursor(self) -> float | None:
        """The cursor's time in seconds; None without a cursor."""
        return None if self.pointed is None else self.pointed.at

    @property
    def shown_baseline(self) -> Baseline | None:
        """The baseline, unless the user hid it."""
        return self.baseline if self.view.baseline_shown else None

    @property
    def stage(self) -> StageChange | None:
        """The stage in force."""
        return self.stages[-1] if self.stages else None

    @property
    def engine(self) -> EngineFacts | None:
        """The engine's facts, once it is ready."""
        return self.header.engine

    @property
    def engine_title(self) -> str:
        """The engine's name as its makers spell it, else the adapter's name, or the address of an attached server."""
        return self.header.engine.title if self.header.engine else self.header.config.engine.known_as

    @property
    def watched(self) -> bool:
        """Whether the server is watched under the load of other clients, so that there is nothing of a client."""
        return self.header.config.watch is not None

    @property
    def watches_several(self) -> bool:
        """Whether several servers are watched, each with a row of its own."""
        return self.header.config.watch is not None and self.header.config.watch.several

    @property
    def steers(self) -> bool:
        """Whether the steering keys have an effect."""
        return self.live and not self.read_only and not self.watched

    @property
    def booting(self) -> bool:
        """Whether no stage with a load has started; of a watch, whether it has not attached yet."""
        if self.watched:
            return self.engine is None
        return not any(stage.request_rate is not None for stage in self.stages)

    @property
    def shows_the_end(self) -> bool:
        """Whether the playhead is at the end of a run that has ended."""
        return not self.live and (self.end is not None or self.view.playhead.at >= self.edge)

    @property
    def pending(self) -> tuple[Command, ...]:
        """Commands without a reply, oldest first; none after the end of the run."""
        return tuple(command for command in self.commands if command.reply is None and self.end is None)

    @property
    def window(self) -> tuple[float, float]:
        """Left and right edge of the time axis that all charts share, seconds."""
        times = self.stats.series.times
        return self.axis.window(float(times[-1]) if times.size else self.view.playhead.at)

    @property
    def scrolls(self) -> bool:
        """Whether the data fill the time axis, so that it moves with them."""
        return self.view.playhead.at > self.axis.start + self.axis.span
