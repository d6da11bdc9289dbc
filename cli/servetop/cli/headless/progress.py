"""How far a headless run is: a bar on a terminal, a line every few seconds in a log."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from servetop.analysis.live_stats import LiveStats
from servetop.core.config import RunConfig, StageConfig
from servetop.core.text.sanitize import sanitize_line
from servetop.engines.process.startup_progress import boot_step
from servetop.run import console
from servetop.tui.drawing import formats

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_REPEATS = 30.0
"""While an engine loads and says nothing new."""
LINE_LENGTH = 100
"""Characters of an engine's line that are shown."""


class Progress(Protocol):
    """What a follower tells its progress to."""

    def due(self, at: float, *, loading: bool, boot: BootLog) -> bool:
        """Whether `show` would show anything at this run time, in an engine's boot or after it."""
        ...

    def show(self, stats: LiveStats, boot: BootLog) -> None:
        """The state now."""
        ...

    def say(self, words: str) -> None:
        """Something that must be seen."""
        ...

    def finish(self) -> None:
        """Nothing more comes."""
        ...


class BootLog:
    """What an engine that loads says: its step, its newest line cut to a glance, and since when it is silent."""

    def __init__(self) -> None:
        self.line = ""
        self._step = ""
        self._heard_at = 0.0

    def hear(self, lines: Sequence[str], at: float) -> None:
        """Take new lines of its output, which came by `at`."""
        self._step = boot_step(lines) or self._step
        self.line, self._heard_at = lines[-1], at

    def words(self, at: float, *, repeated: bool = False) -> str:
        """Step, line and silence; without the line where that was said before."""
        silent = at - self._heard_at
        parts = [self._step]
        if self.line and not repeated:
            parts.append(self.line if len(self.line) <= LINE_LENGTH else self.line[:LINE_LENGTH] + "…")
        if silent >= SECONDS_BETWEEN_LINES:
            parts.append(f"(no new line for {silent:.0f} s)")
        return "  ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a sitting of a run is to play."""

    stages: Sequence[StageConfig]
    first: int = 0
    """Index of its first stage: a resumed run goes on counting."""
    attached: bool = False
    """The engine is there already."""

    @classmethod
    def of(cls, config: RunConfig, *, first: int = 0) -> Plan:
        """The plan of a configuration's stages, from stage `first` on."""
        return cls(stages=config.stages, first=first, attached=config.engine.url is not None)

    def position(self, stage: int) -> int:
        """A stage's place in this sitting, counted from 0; negative before its first stage."""
        return stage - self.first


def status_line(stats: LiveStats, plan: Plan, *, boot: str) -> str:
    """The run in one line; before its load, `boot` says what the engine does."""
    number = plan.position(stats.load.stage) + 1
    if number < 1:
        engine = "attaching to the server" if plan.attached else "engine is loading"
        return f"{formats.minutes(stats.at)}  {engine}  {boot}".rstrip()
    ttft = stats.latencies["ttft"]
    parts = [
        f"{formats.minutes(stats.at)}  stage {number}/{max(len(plan.stages), number)}",
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
    """For logs: a plain line when something happens, else every few seconds."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._next = 0.0
        self._repeat_at = 0.0
        self._said: str | None = None

    def due(self, at: float, *, loading: bool, boot: BootLog) -> bool:
        """Some seconds after the last line; while an engine loads, later if it has said nothing new."""
        return at >= (self._repeat_at if loading and boot.line == self._said else self._next)

    def show(self, stats: LiveStats, boot: BootLog) -> None:
        """A line, unless there was one just now; while an engine loads, what it said is not said again."""
        loading = self._plan.position(stats.load.stage) < 0
        repeated = loading and boot.line == self._said
        if not self.due(stats.at, loading=loading, boot=boot):
            return
        self._next, self._repeat_at = stats.at + SECONDS_BETWEEN_LINES, stats.at + SECONDS_BETWEEN_REPEATS
        self._said = boot.line
        self.say(status_line(stats, self._plan, boot=boot.words(stats.at, repeated=repeated)))

    def say(self, words: str) -> None:
        """A line at once."""
        console.status(words)

    def finish(self) -> None:
        """Nothing to tidy."""


class DoneShare:
    """How much of the planned load is done, 0-1: stages weigh by their seconds, or alike when some have no duration."""

    def __init__(self, stages: Sequence[StageConfig]) -> None:
        self._stages = stages
        seconds = [stage.duration for stage in stages]
        self._weights = [1.0 if None in seconds else second or 0.0 for second in seconds]
        self._stage = -1
        self._began_at = 0.0
        self._completed_before = 0

    def after(self, stage: int, at: float, completed: int) -> float:
        """`stage` is in force at `at`, and so many requests of the whole run are completed."""
        if stage != self._stage:
            self._stage, self._began_at, self._completed_before = stage, at, completed
        if not 0 <= stage < len(self._stages):
            return float(stage > 0)
        plan = self._stages[stage]
        by_time = (at - self._began_at) / plan.duration if plan.duration else 0.0
        by_count = (completed - self._completed_before) / plan.num_prompts if plan.num_prompts else 0.0
        done = sum(self._weights[:stage]) + self._weights[stage] * min(1.0, max(by_time, by_count))
        return done / sum(self._weights)


class BarProgress:
    """For terminals: how much of the planned load is done, and the status line."""

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
        """Always."""
        return True

    def show(self, stats: LiveStats, boot: BootLog) -> None:
        """Redraw."""
        status = status_line(stats, self._plan, boot=boot.words(stats.at))
        done = self._done.after(self._plan.position(stats.load.stage), stats.at, stats.totals.completed)
        with contextlib.suppress(OSError):  # the terminal is gone
            self._bar.update(self._task, completed=done, status=sanitize_line(status))

    def say(self, words: str) -> None:
        """Above the bar."""
        with contextlib.suppress(OSError):
            self._bar.console.print(sanitize_line(words), markup=False, highlight=False)

    def finish(self) -> None:
        """Remove the bar."""
        with contextlib.suppress(OSError):
            self._bar.stop()
