"""How far a headless run is: a bar on a terminal, a line every few seconds in a log."""

from __future__ import annotations

import sys
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from servetop.core.config import RunConfig
from servetop.core.stats import LiveStats
from servetop.tui import formats

SECONDS_BETWEEN_LINES = 5.0


class Progress(Protocol):
    """What a follower tells its progress to."""

    def show(self, stats: LiveStats, log_line: str) -> None:
        """The state now; `log_line` is the engine's newest."""
        ...

    def say(self, words: str) -> None:
        """Something that must be seen."""
        ...

    def finish(self) -> None:
        """Nothing more comes."""
        ...


def status_line(stats: LiveStats, stages: int, *, log_line: str) -> str:
    """The run in one line."""
    if stats.load.stage < 0:
        return f"{formats.minutes(stats.at)}  engine is loading  {log_line}"
    ttft = stats.latencies["ttft"]
    parts = [
        f"{formats.minutes(stats.at)}  stage {stats.load.stage + 1}/{stages}",
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

    def __init__(self, config: RunConfig) -> None:
        self._stages = len(config.stages)
        self._next = 0.0

    def show(self, stats: LiveStats, log_line: str) -> None:
        """A line, unless there was one just now."""
        if stats.at >= self._next:
            self._next = stats.at + SECONDS_BETWEEN_LINES
            self.say(status_line(stats, self._stages, log_line=log_line))

    def say(self, words: str) -> None:
        """A line at once."""
        sys.stderr.write(words + "\n")
        sys.stderr.flush()

    def finish(self) -> None:
        """Nothing to tidy."""


class StatusColumn(ProgressColumn):
    """The status line, cut to the terminal."""

    def render(self, task: Task) -> Text:
        """Plain text, never markup: engine output may be in it."""
        return Text(str(task.fields.get("status", "")), no_wrap=True, overflow="ellipsis")


class BarProgress:
    """For terminals: how much of the planned load is done, and the status line."""

    def __init__(self, config: RunConfig) -> None:
        self._stages = config.stages
        self._bar = RichProgress(
            TextColumn("servetop"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}%"),
            StatusColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("run", total=max(1, len(config.stages)))
        self._bar.start()

    def show(self, stats: LiveStats, log_line: str) -> None:
        """Redraw."""
        status = status_line(stats, len(self._stages), log_line=log_line)
        self._bar.update(self._task, completed=max(0, stats.load.stage), status=status)

    def say(self, words: str) -> None:
        """Above the bar."""
        self._bar.console.print(Text(words))

    def finish(self) -> None:
        """Remove the bar."""
        self._bar.stop()
