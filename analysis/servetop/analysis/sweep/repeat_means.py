"""The output tokens/s of the cells of a sweep so far, as means over the starts of its engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from servetop.analysis.cells.attempts import AttemptState, StageHistory, StageTally, cell_attempts
from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.sweep.engine_starts import engine_starts
from servetop.analysis.sweep.start_mean import StartMean, mean_of_starts
from servetop.core.events import Command, Note, RunEnd, StageChange
from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.tick import TICK_SECONDS, Tick

LEAST_SECONDS = 2.0
"""Length of a repeat below which its rate, of whole ticks, is too inexact to be compared with others."""
_Cell = TypeVar("_Cell")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One finished measurement of a cell."""

    stage: StageChange
    output_rate: float
    """Output tokens/s, mean from its start to the end of its last request."""
    seconds: float
    """The time over which that is the mean, in whole ticks."""


def repeat_means(
    cells: Mapping[_Cell, Sequence[Repeat]], notes: Sequence[Note], *, attached: bool
) -> dict[_Cell, StartMean]:
    """Return the mean output tokens/s of each cell over the starts; not of one with a repeat under LEAST_SECONDS."""
    began = {each.stage.index: each.stage.at for repeats in cells.values() for each in repeats}
    starts = engine_starts(began, notes, attached=attached)
    found = {}
    for cell, repeats in cells.items():
        if any(each.seconds < LEAST_SECONDS for each in repeats):
            continue
        rates = [each.output_rate for each in repeats]
        mean = mean_of_starts(rates, [starts[each.stage.index] for each in repeats])
        if mean is not None:
            found[cell] = mean
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """The counters of a tick, without its histograms."""

    start: float
    stage: int
    output_tokens: int
    ok: int
    failed: int
    left: int
    """Requests queued or in flight at its end."""

    @classmethod
    def of(cls, tick: Tick) -> _Counts:
        client, gauges = tick.client, tick.client.gauges
        return cls(
            start=tick.start,
            stage=gauges.stage,
            output_tokens=client.output_tokens,
            ok=client.ok,
            failed=client.failed,
            left=gauges.in_flight + gauges.queued,
        )


@dataclass(slots=True, kw_only=True)
class _Totals:
    """The sums over the ticks of a stage."""

    tally: StageTally = StageTally()
    ticks: int = 0
    busy: int = 0
    """Ticks to the end of its last request."""
    output_tokens: int = 0

    def add(self, tick: _Counts, *, stage: int) -> None:
        self.ticks += 1
        self.output_tokens += tick.output_tokens
        self.tally = StageTally(
            ok=self.tally.ok + tick.ok,
            failed=self.tally.failed + tick.failed,
            left=tick.left,
            until=tick.start + TICK_SECONDS,
        )
        if tick.stage == stage and (tick.output_tokens or tick.left):
            self.busy = self.ticks

    def repeat(self, stage: StageChange) -> Repeat:
        """Return what the stage measured, up to the end of its last request."""
        seconds = (self.busy or self.ticks) * TICK_SECONDS
        return Repeat(stage=stage, output_rate=self.output_tokens / seconds, seconds=seconds)


class GrowingSweep:
    """The stages of a growing recording of a sweep, and what their ticks add up to."""

    def __init__(self, *, max_failures: str, attached: bool) -> None:
        self._max_failures = max_failures
        self._attached = attached
        self._rows: list[StageChange] = []
        self._notes: list[Note] = []
        self._commands: list[Command] = []
        self._end: RunEnd | None = None
        self._waiting: list[_Counts] = []
        """Ticks whose stages follow in a later update."""
        self._totals: dict[int, _Totals] = {}

    def add(self, update: RunUpdate) -> None:
        """Add what was recorded since the last call."""
        self._rows += update.stages
        self._notes += update.notes
        self._commands += update.commands
        self._end = self._end or update.end
        self._waiting += map(_Counts.of, update.ticks)
        if update.more:
            return
        for tick in self._waiting:
            row = next((each for each in reversed(self._rows) if each.at <= tick.start), None)
            if row is not None and row.request_rate is not None:
                self._totals.setdefault(row.index, _Totals()).add(tick, stage=row.index)
        self._waiting.clear()

    @property
    def ended(self) -> list[StageChange]:
        """The stages with a load, except warm-ups, that another one or the end of the run has followed."""
        rows = {each.index: each for each in reversed(self._rows)}
        now = self._rows[-1].index if self._rows and self._end is None else None
        return [rows[index] for index in sorted(self._totals) if index != now and not rows[index].warmup]

    def means(self) -> dict[StageLoad, StartMean]:
        """Return the mean output tokens/s of each cell, over the repeats that ended and were measured as a whole."""
        tallies = {index: totals.tally for index, totals in self._totals.items()}
        attempts = cell_attempts(
            StageHistory(
                stages=self._rows,
                tallies=tallies,
                notes=self._notes,
                commands=self._commands,
                end=self._end,
                max_failures=self._max_failures,
            )
        )
        cells: dict[StageLoad, list[Repeat]] = {}
        for row in self.ended:
            attempt = attempts[row.index]
            if attempt.state is AttemptState.WHOLE and not attempt.steered:
                cells.setdefault(StageLoad.of(row), []).append(self._totals[row.index].repeat(row))
        return repeat_means(cells, self._notes, attached=self._attached)
