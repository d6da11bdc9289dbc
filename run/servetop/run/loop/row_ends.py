"""Ends the rows of a sweep: skips the higher loads of a row once a cell of it meets a condition of `until`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from servetop.analysis.cells.cell_row import is_higher, is_same_cell
from servetop.core.clock import Clock
from servetop.core.config import RunConfig, StageConfig
from servetop.core.errors import RecordingError
from servetop.core.events import Severity
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.text.counted import counted
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.run.loop.plan_progress import PlanProgress
from servetop.run.loop.stage_plan import Segment
from servetop.run.loop.tick_recorder import TickRecorder

SOURCE = "sweep"
"""Source of the notes that say which cells are skipped."""


class RowEnds:
    """Reads the figures of each cell from the recording when it has ended, in a thread."""

    def __init__(self, config: RunConfig, recorder: Recorder, ticks: TickRecorder, *, clock: Clock) -> None:
        self._config = config
        self._recorder = recorder
        self._ticks = ticks
        self._clock = clock
        self._judgement: asyncio.Task[str] | None = None
        self._judged = -1

    def are_settled(self, progress: PlanProgress) -> bool:
        """Whether the cell that has ended is judged, and the cells that its row no longer needs are skipped.

        Call it again until it is, with everything recorded that belongs to the cell.
        """
        if progress.current is None or not self._config.until:
            return True
        stage, cell = progress.current.stages[-1]
        if stage == self._judged or not _above(cell, progress.left) or _comes_again(cell, progress.left):
            return True
        if self._judgement is None:
            self._judgement = asyncio.ensure_future(asyncio.to_thread(self._why, self._recorder.path, stage))
        if not self._judgement.done():
            return False
        judgement, self._judgement, self._judged = self._judgement, None, stage
        try:
            if reason := judgement.result():
                self._skip(_above(cell, progress.left), progress, stage=stage, reason=reason)
        except RecordingError as error:
            text = f"row continues after {cell.label}: its figures cannot be read: {error}"
            self._ticks.note(Severity.WARNING, SOURCE, text=text)
        return True

    def _why(self, path: Path, stage: int) -> str:
        """Return why the cell of a stage ends its row; empty if it does not."""
        from servetop.reports.check.row_conditions import parse_row_conditions, row_end  # not for other runs
        from servetop.reports.summary.summary import cell_summaries

        if self._recorder.failing:
            raise RecordingError(self._recorder.failing)
        with contextlib.closing(RecordingReader.open(path)) as reader:
            conditions, objectives = parse_row_conditions(self._config), self._config.goodput
            return row_end(cell_summaries(reader, stage), conditions, objectives)

    def _skip(self, segments: Sequence[Segment], progress: PlanProgress, *, stage: int, reason: str) -> None:
        cells = [cell for segment in segments for _, cell in segment.stages]
        progress.drop(segments)
        for cell in cells:
            self._ticks.add_skipped(SkippedCell.of(cell, at=self._clock.now(), stage=stage, reason=reason))
        self._ticks.note(Severity.INFO, SOURCE, text=f"{counted(len(cells), 'cell')} skipped: {reason}")


def _above(cell: StageConfig, left: Sequence[Segment]) -> list[Segment]:
    """Return the segments, each with one stage, with higher loads of the row."""
    return [segment for segment in left if is_higher(segment.stages[0][1], cell)]


def _comes_again(cell: StageConfig, left: Sequence[Segment]) -> bool:
    """Whether the next segment is another repeat of the cell."""
    return bool(left) and is_same_cell(left[0].stages[0][1], cell)
