"""The progress of a headless run: a bar on a terminal, a line every few seconds in a log."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from servetop.analysis.live_stats import LiveStats
from servetop.core.config import RunConfig, StageConfig
from servetop.core.config_values.planned_seconds import planned_seconds
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.engines.process.startup_progress import startup_step
from servetop.run import console

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_REPEATS = 30.0
"""Seconds between lines while an engine loads and logs nothing new."""
LINE_LENGTH = 100
"""Characters shown of a log line."""


class Progress(Protocol):
    """Shows the progress of a run."""

    def due(self, at: float, *, loading: bool, boot: BootLog) -> bool:
        """Whether `show` would print anything at this run time; `loading` before the first stage."""
        ...

    def show(self, stats: LiveStats, boot: BootLog) -> None:
        """Show the current state."""
        ...

    def print_line(self, line: str) -> None:
        """Print a line at once."""
        ...

    def finish(self) -> None:
        """Restore the terminal; nothing follows."""
        ...


class BootLog:
    """The start-up log of an engine: its current step, its newest line, and how long it has been silent."""

    def __init__(self) -> None:
        self.line = ""
        self._step = ""
        self._newest_at = 0.0

    def add(self, lines: Sequence[str], at: float) -> None:
        """Add new lines of output, received by `at`."""
        self._step = startup_step(lines) or self._step
        self.line, self._newest_at = lines[-1], at

    def text(self, at: float, *, repeated: bool = False) -> str:
        """Step, line and time without output; without the line if it is `repeated`."""
        silent = at - self._newest_at
        parts = [self._step]
        if self.line and not repeated:
            parts.append(self.line if len(self.line) <= LINE_LENGTH else self.line[:LINE_LENGTH] + "…")
        if silent >= SECONDS_BETWEEN_LINES:
            parts.append(f"(no new line for {silent:.0f} s)")
        return "  ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The stages of one session of a run."""

    stages: Sequence[StageConfig]
    first: int = 0
    """Index of its first stage; a resumed run continues the numbers."""
    attached: bool = False
    """Whether the engine was already running."""
    budget: float | None = None
    """Seconds of load of a search, whose stages are not planned; None for another run."""
    rest: Callable[[float], str] | None = None
    """Returns what is left of a sweep at a time in words; None for another run."""

    @classmethod
    def of(cls, config: RunConfig, *, first: int = 0) -> Plan:
        """Return the plan of a configuration's stages, from stage `first` on."""
        budget = None if config.search is None else config.search.budget
        return cls(stages=config.stages, first=first, attached=config.engine.url is not None, budget=budget)

    def position(self, stage: int) -> int:
        """Return the position of a stage in this session, from 0; negative before the first stage."""
        return stage - self.first

    def after(self, position: int, *, at: float) -> str:
        """Return how long the load of the stages after a position lasts, such as `1:20 to come`; empty if unknown."""
        if self.rest is not None:
            return self.rest(at)
        seconds = [planned_seconds(stage) for stage in self.stages[position + 1 :]]
        known = [each for each in seconds if each is not None]
        return f"{formats.clock(sum(known))} to come" if known and len(known) == len(seconds) else ""


def status_line(stats: LiveStats, plan: Plan, *, boot: str) -> str:
    """Return the state of the run in one line; before the load, `boot` describes the start of the engine."""
    number = plan.position(stats.load.stage) + 1
    if number < 1:
        engine = "attaching to the server" if plan.attached else "engine is loading"
        return f"{formats.clock(stats.at)}  {engine}  {boot}".rstrip()
    ttft, most = stats.latencies["ttft"], max(len(plan.stages), number)
    place = f"stage {number}/{most}" if plan.budget is None else f"probe {number}"
    parts = [
        ", ".join(filter(None, (f"{formats.clock(stats.at)}  {place}", plan.after(number - 1, at=stats.at)))),
        f"sent {formats.number(stats.rates.sent)} done {formats.number(stats.rates.completed)} req/s",
        f"in flight {stats.load.in_flight}",
        f"out {formats.count(stats.rates.output_tokens)} tok/s",
        f"TTFT p50 {formats.seconds(ttft.p50)} p99 {formats.seconds(ttft.p99)}",
    ]
    if stats.engine is not None and stats.engine.kv_usage is not None:
        parts.append(f"KV {formats.percent(stats.engine.kv_usage)}")
    if stats.totals.preemptions == stats.totals.preemptions:  # not NaN: exported
        parts.append(f"preemptions {formats.count(stats.totals.preemptions)}")
    if stats.totals.failed:
        parts.append(f"failed {stats.totals.failed:,}")
    return " │ ".join([*parts, f"trust {stats.trust.verdict}"])


class LineProgress:
    """Plain lines for logs: one for each event, and one every few seconds."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._next = 0.0
        self._repeat_at = 0.0
        self._shown_line: str | None = None

    def due(self, at: float, *, loading: bool, boot: BootLog) -> bool:
        """Whether the time for the next line has come; later while a loading engine logs nothing new."""
        return at >= (self._repeat_at if loading and boot.line == self._shown_line else self._next)

    def show(self, stats: LiveStats, boot: BootLog) -> None:
        """Print a line if one is due; a log line of a loading engine is not repeated."""
        loading = self._plan.position(stats.load.stage) < 0
        repeated = loading and boot.line == self._shown_line
        if not self.due(stats.at, loading=loading, boot=boot):
            return
        self._next, self._repeat_at = stats.at + SECONDS_BETWEEN_LINES, stats.at + SECONDS_BETWEEN_REPEATS
        self._shown_line = boot.line
        self.print_line(status_line(stats, self._plan, boot=boot.text(stats.at, repeated=repeated)))

    def print_line(self, line: str) -> None:
        """Print a line."""
        console.status(line)

    def finish(self) -> None:
        """Do nothing: lines need no clean-up."""


class DoneShare:
    """The finished share of the planned load, 0-1: stages weigh by duration, or equally if one has no duration."""

    def __init__(self, stages: Sequence[StageConfig]) -> None:
        self._stages = stages
        seconds = [stage.duration for stage in stages]
        self._weights = [1.0 if None in seconds else second or 0.0 for second in seconds]
        self._stage = -1
        self._started_at = 0.0
        self._completed_before = 0

    def after(self, stage: int, at: float, completed: int) -> float:
        """Return the share at time `at` in `stage`, with this number of completed requests in the whole run."""
        if stage != self._stage:
            self._stage, self._started_at, self._completed_before = stage, at, completed
        if not 0 <= stage < len(self._stages):
            return float(stage > 0)
        plan = self._stages[stage]
        by_time = (at - self._started_at) / plan.duration if plan.duration else 0.0
        by_count = (completed - self._completed_before) / plan.num_prompts if plan.num_prompts else 0.0
        done = sum(self._weights[:stage]) + self._weights[stage] * min(1.0, max(by_time, by_count))
        return done / sum(self._weights)


class BarProgress:
    """A progress bar and the status line, for terminals."""

    def __init__(self, plan: Plan) -> None:
        from rich.progress import BarColumn, TextColumn  # not for a run without a terminal
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        from servetop.cli.tables import SanitizingConsole

        self._plan = plan
        self._done = DoneShare(plan.stages)
        one_line = Column(no_wrap=True, overflow="ellipsis")
        self._bar = RichProgress(
            TextColumn("servetop"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[status]}", markup=False, table_column=one_line),  # engine output may be in it
            console=SanitizingConsole(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("run", total=1.0, status="")
        self._bar.start()

    def due(self, at: float, *, loading: bool, boot: BootLog) -> bool:  # noqa: ARG002
        """Always true: the bar is redrawn every time."""
        return True

    def show(self, stats: LiveStats, boot: BootLog) -> None:
        """Redraw the bar and the status line."""
        status = status_line(stats, self._plan, boot=boot.text(stats.at))
        done = self._done.after(self._plan.position(stats.load.stage), stats.at, stats.totals.completed)
        if self._plan.budget is not None:
            done = min(1.0, stats.at / self._plan.budget)
        with contextlib.suppress(OSError):  # the terminal is gone
            self._bar.update(self._task, completed=done, status=sanitize_line(status))

    def print_line(self, line: str) -> None:
        """Print a line above the bar."""
        with contextlib.suppress(OSError):
            self._bar.console.print(sanitize_line(line), markup=False, highlight=False)

    def finish(self) -> None:
        """Remove the bar."""
        with contextlib.suppress(OSError):
            self._bar.stop()
