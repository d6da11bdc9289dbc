"""What a sweep does with cells that it cannot measure, as its engine fails or is too small: it records them as failed,
and the others follow.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.clock import Clock
from servetop.core.config import RunConfig, StageConfig
from servetop.core.config_values.cell_engine import engine_settings
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.config_values.cell_workload import cell_workload
from servetop.core.errors import EngineError, LoadError, ServetopError, UsageError
from servetop.core.events import Severity
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.interfaces.stage_row import planned_row
from servetop.core.text.counted import counted
from servetop.run.loop.plan_progress import PlanProgress
from servetop.run.loop.stage_plan import EngineNeeds, Segment
from servetop.run.loop.tick_recorder import TickRecorder
from servetop.run.loop.workload_fit import check_at_engine

MOST_STARTS = 3
"""Starts, of engines with different settings, that may fail one after the other before the engine has started once."""


class CellFailures:
    """The failed cells of one session of a sweep.

    A run other than a sweep, and one of an attached server, ends with its first failure.
    """

    def __init__(self, config: RunConfig, ticks: TickRecorder, *, clock: Clock) -> None:
        self._continues = config.drain_at_stages and config.engine.url is None
        self._is_sweep = config.drain_at_stages
        self._workload = config.workload
        self._default_batch = config.engine.max_num_seqs
        self._ticks = ticks
        self._clock = clock
        self._has_failed_cells = False
        self._never_started = 0
        self._failed_settings: Mapping[str, Any] = {}
        self._started: list[EngineNeeds] = []
        """The needs of the engines that have started."""
        self._first: EngineError | None = None
        self._unfit: dict[str | None, str] = {}
        """Why the engine cannot process the requests of a cell, by its settings; empty if it can."""

    def started(self, needs: EngineNeeds) -> None:
        """The engine has started, or was changed, for some cells."""
        if needs.of_any_start not in self._started:
            self._started.append(needs.of_any_start)

    def skip_engine(self, error: EngineError, segments: deque[Segment]) -> None:
        """Record the cells for which the engine did not start, and drop them; one that did before is started again.

        Raises the error if no cell follows, or if nothing suggests that the engine would start for one.
        """
        self._keep(error)
        if not segments:
            raise error
        needs = segments[0].needs
        self._never_started = self._never_started + 1 if needs.settings == self._failed_settings else 1
        self._failed_settings = needs.settings
        again = needs.of_any_start in self._started
        for segment in [each for each in segments if _fails_too(each.needs, needs, again=again)]:
            segments.remove(segment)
            self._record(segment.stages, error)
        if not segments or (not self._started and self._never_started >= MOST_STARTS):
            raise error

    def failed_to_restart(self, error: EngineError, segments: deque[Segment], *, died: bool) -> None:
        """Record why there is no engine for the next cells: it `died` before it was stopped, or did not start."""
        if died:
            self._keep(error)
        else:
            self.skip_engine(error, segments)

    def died(self, error: EngineError, segment: Segment | None, *, stage: int) -> Sequence[Segment]:
        """Record the cell during which the engine died; return the rest of its segment, if there is one.

        Raises the error unless the run continues.
        """
        self._keep(error)
        cells = () if segment is None else segment.stages
        self._record([cell for cell in cells if cell[0] == stage], error)
        rest = tuple(cell for cell in cells if cell[0] > stage)
        return () if segment is None or not rest else (dataclasses.replace(segment, stages=rest),)

    async def drop_unfit(self, progress: PlanProgress, facts: EngineFacts, *, settings: Mapping[str, Any]) -> None:
        """Record the cells that follow whose requests the engine with these settings cannot process, and drop them.

        Raises the error of the last one if nothing else was or will be measured, and that of any outside of sweeps.
        """
        fitting: list[Segment] = []
        failure: UsageError | None = None
        for segment in progress.left:
            if engine_settings(segment.settings) != settings:
                fitting.append(segment)
                continue
            try:
                await check_at_engine(cell_workload(self._workload, segment.settings), facts)
                fitting.append(segment)
            except UsageError as error:
                if not self._is_sweep:
                    raise
                failure = self._misfit(error, segment, max_num_seqs=facts.max_num_seqs)
        progress.follow(fitting)
        if failure is not None and not fitting and progress.stage < 0:
            raise failure

    def _misfit(self, error: UsageError, segment: Segment, *, max_num_seqs: int | None) -> UsageError:
        cells = [cell for cell in segment.stages if not cell[1].warmup]
        self._record(cells, error, max_num_seqs=max_num_seqs)
        for _, cell in cells:
            self._ticks.note(Severity.ERROR, "load", text=f"{cell.label} failed: {error}")
            self._unfit.setdefault(settings_text(cell.settings), f"{cell.label} failed: {error}")
        return error

    def explain(self, failure: ServetopError | None) -> ServetopError | None:
        """Return why the run failed: the first failure of the engine, or else what ended it."""
        if failure is None and self._first is None and self._unfit:
            (first, *others) = self._unfit.values()
            more = f" (and {counted(len(others), 'other cell')})" if others else ""
            return LoadError(f"{first}{more}")
        if self._first is None or not (failure is None or isinstance(failure, EngineError)):
            return failure
        if not self._has_failed_cells:
            return self._first
        return EngineError(f"{self._first}: --resume measures the failed cells again", self._first.log_tail)

    def _keep(self, error: EngineError) -> None:
        if not self._continues:
            raise error
        self._first = self._first or error
        self._ticks.note(Severity.ERROR, "engine", text=str(error))

    def _record(
        self, cells: Sequence[tuple[int, StageConfig]], error: ServetopError, *, max_num_seqs: int | None = None
    ) -> None:
        for index, cell in cells:
            row = planned_row(cell, at=self._clock.now(), index=index)
            batch = cell.max_num_seqs or max_num_seqs or self._default_batch
            self._ticks.add_stage(dataclasses.replace(row, max_num_seqs=batch, failure=str(error)))
            self._has_failed_cells = True


def _fails_too(needs: EngineNeeds, failed: EngineNeeds, *, again: bool) -> bool:
    """Whether cells need what did not start; in any start, unless it may start `again` for another repeat."""
    return needs == failed or (not again and needs.of_any_start == failed.of_any_start)
