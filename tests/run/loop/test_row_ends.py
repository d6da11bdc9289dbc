"""A row continues, with a warning, if the figures of its cell cannot be read; a cell is judged once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from servetop.core.clock import ManualClock
from servetop.core.config import RunConfig, StageConfig
from servetop.core.events import Severity
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.run.loop.plan_progress import PlanProgress
from servetop.run.loop.row_ends import RowEnds

CELLS = tuple(StageConfig(request_rate=rate, num_prompts=1, repeat=each) for rate in (1.0, 2.0) for each in (0, 1))


@dataclass
class Written:
    """A recorder of a file that does not exist, and what would be written to it."""

    path: Path
    failing: str | None = None
    notes: list[tuple[Severity, str]] = field(default_factory=list)
    skipped: list[SkippedCell] = field(default_factory=list)

    def note(self, severity: Severity, source: str, *, text: str) -> None:
        self.notes.append((severity, f"{source}: {text}"))

    def add_skipped(self, cell: SkippedCell) -> None:
        self.skipped.append(cell)


def rows_of(written: Written, *until: str) -> tuple[RowEnds, PlanProgress]:
    config = RunConfig(stages=CELLS, until=until, drain_at_stages=True)
    both = cast("Any", written)
    return RowEnds(config, both, both, clock=ManualClock()), PlanProgress(config, first_stage=0)


async def settle(rows: RowEnds, progress: PlanProgress) -> int:
    """Ask until the cell is judged; return how often it was not yet."""
    for count in range(60_000):
        if rows.are_settled(progress):
            return count
        await asyncio.sleep(0.001)
    raise AssertionError("never settled")


async def test_a_cell_whose_figures_cannot_be_read_ends_no_row_and_is_judged_once(tmp_path: Path) -> None:
    written = Written(tmp_path / "gone.servetop")
    rows, progress = rows_of(written, "failed>0")
    progress.next()
    assert await settle(rows, progress) == 0  # another repeat of it follows
    progress.next()
    assert await settle(rows, progress) > 0
    ((severity, text),) = written.notes
    assert severity is Severity.WARNING
    assert text.startswith("sweep: row continues after 1 req/s: its figures cannot be read: ")
    assert "gone.servetop" in text
    assert await settle(rows, progress) == 0
    assert len(progress.left) == 2
    assert not written.skipped


async def test_a_file_that_cannot_be_written_does_not_have_the_figures(tmp_path: Path) -> None:
    written = Written(tmp_path / "full.servetop", failing="full.servetop cannot be written (disk full)")
    rows, progress = rows_of(written, "failed>0")
    progress.next()
    progress.next()
    await settle(rows, progress)
    assert "cannot be read: full.servetop cannot be written (disk full)" in written.notes[0][1]


async def test_without_conditions_and_without_higher_loads_nothing_is_read(tmp_path: Path) -> None:
    for until, segments in (((), 1), (("failed>0",), 4)):
        written = Written(tmp_path / "gone.servetop")
        rows, progress = rows_of(written, *until)
        for _ in range(segments):
            progress.next()
        assert await settle(rows, progress) == 0
        assert not written.notes
