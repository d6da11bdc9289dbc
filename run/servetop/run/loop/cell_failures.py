"""What a sweep does when its engine fails: the cells that it cannot measure are recorded, and the others follow."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence

from servetop.core.clock import Clock
from servetop.core.config import RunConfig, StageConfig
from servetop.core.errors import EngineError, ServetopError
from servetop.core.events import Severity
from servetop.core.stage_row import planned_row
from servetop.run.loop.stage_plan import Segment
from servetop.run.loop.tick_recorder import TickRecorder

MOST_BATCH_SIZES = 3
"""Batch sizes that may fail to start one after the other before the engine has started once."""


class CellFailures:
    """The failed cells of one session of a sweep.

    A run other than a sweep, and one of an attached server, ends with its first failure.
    """

    def __init__(self, config: RunConfig, ticks: TickRecorder, *, clock: Clock) -> None:
        self._continues = config.drain_at_stages and config.engine.url is None
        self._default_batch = config.engine.max_num_seqs
        self._ticks = ticks
        self._clock = clock
        self._has_failed_cells = False
        self._never_started = 0
        self._has_started = False
        self._first: EngineError | None = None

    def started(self) -> None:
        """The engine has started."""
        self._has_started = True

    def skip_batch(self, error: EngineError, segments: deque[Segment]) -> None:
        """Record the cells of the next batch size, for which the engine did not start, and drop them.

        Raises the error if no cell follows, or if nothing suggests that the engine would start for one.
        """
        self._keep(error)
        self._never_started += 1
        if not segments:
            raise error
        batch = segments[0].max_num_seqs
        while segments and segments[0].max_num_seqs == batch:
            self._record(segments.popleft().stages, error)
        if not segments or (not self._has_started and self._never_started >= MOST_BATCH_SIZES):
            raise error

    def failed_to_restart(self, error: EngineError, segments: deque[Segment], *, died: bool) -> None:
        """Record why there is no engine for the next batch size: it `died` before it was stopped, or did not start."""
        if died:
            self._keep(error)
        else:
            self.skip_batch(error, segments)

    def died(self, error: EngineError, segment: Segment | None, *, stage: int) -> Sequence[Segment]:
        """Record the cell during which the engine died; return the rest of its segment, if there is one.

        Raises the error unless the run continues.
        """
        self._keep(error)
        cells = () if segment is None else segment.stages
        self._record([cell for cell in cells if cell[0] == stage], error)
        rest = tuple(cell for cell in cells if cell[0] > stage)
        return () if segment is None or not rest else (dataclasses.replace(segment, stages=rest),)

    def explain(self, failure: ServetopError | None) -> ServetopError | None:
        """Return why the run failed: the first failure of the engine, or else what ended it."""
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

    def _record(self, cells: Sequence[tuple[int, StageConfig]], error: EngineError) -> None:
        for index, cell in cells:
            row = planned_row(cell, at=self._clock.now(), index=index)
            batch = self._default_batch if cell.max_num_seqs is None else cell.max_num_seqs
            self._ticks.add_stage(dataclasses.replace(row, max_num_seqs=batch, failure=str(error)))
            self._has_failed_cells = True
