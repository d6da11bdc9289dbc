"""What is left of a sweep: the cells that follow, and their time by what cells took so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from servetop.analysis.cells.attempts import RESUMED
from servetop.analysis.diagnosis.run_record import RESTARTING
from servetop.analysis.sweep.sweep_rest import SweepRest, sweep_rest
from servetop.core.config import StageConfig
from servetop.core.events import Note, Severity, StageChange
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.interfaces.stage_row import planned_row

CELLS = [StageConfig(request_rate=rate, duration=10.0) for rate in (1.0, 2.0, 4.0, 8.0)]
CLOSED = [StageConfig(request_rate=math.inf, max_concurrency=each, num_prompts=9) for each in (1, 2, 4)]


def started(cells: Sequence[StageConfig], *times: float, first: int = 0, batch: int | None = None) -> list[StageChange]:
    """A row for each time, of the cells in their order; the engine reports the batch size."""
    rows = [planned_row(cells[each], at=at, index=first + each) for each, at in enumerate(times)]
    return [replace(row, max_num_seqs=batch) for row in rows]


def resumed(at: float) -> Note:
    return Note(at=at, severity=Severity.INFO, source=RESUMED, text="")


def test_before_the_first_cell_ends_the_plan_tells_the_time() -> None:
    assert sweep_rest(CELLS, [], at=0.0) == SweepRest(cells=4, seconds=40.0)
    assert sweep_rest(CELLS, started(CELLS, 5.0), at=8.0) == SweepRest(cells=3, seconds=37.0)


def test_the_time_is_corrected_by_what_cells_took() -> None:
    rest = sweep_rest(CELLS, started(CELLS, 5.0, 20.0, 35.0, batch=256), at=40.0)
    assert rest == SweepRest(cells=1, seconds=15.0 + 10.0)
    assert rest.text == "1 cell to come, about 0:25 left"


def restart(at: float) -> Note:
    return Note(at=at, severity=Severity.INFO, source="engine", text=f"max_num_seqs 8 → 16: {RESTARTING}")


SIZES = [replace(cell, max_num_seqs=size) for size in (8, 16, 32) for cell in CELLS[:2]]


def of_sizes(*times: float) -> list[StageChange]:
    """A row for each time, of the cells of two batch sizes and more."""
    return [planned_row(SIZES[each], at=at, index=each) for each, at in enumerate(times)]


def test_a_restart_of_the_engine_is_not_part_of_the_cell_before_it() -> None:
    begun, notes = of_sizes(5.0, 15.0, 55.0), [restart(25.0)]
    rest = sweep_rest(SIZES, begun, notes=notes, at=60.0)
    assert rest == SweepRest(cells=3, seconds=5.0 + 3 * 10.0 + 30.0), "one more restart of 30 s, and no longer cells"


def test_a_restart_in_progress_takes_as_long_as_the_others() -> None:
    begun, notes = of_sizes(5.0, 15.0, 55.0, 65.0), [restart(25.0), restart(75.0)]
    assert sweep_rest(SIZES, begun, notes=notes, at=85.0) == SweepRest(cells=2, seconds=20.0 + 30.0 - 10.0)
    assert sweep_rest(SIZES, begun, notes=notes, at=300.0) == SweepRest(cells=2, seconds=20.0)


def test_an_engine_that_changes_its_batch_size_while_it_runs_has_no_restarts_to_come() -> None:
    assert sweep_rest(SIZES, of_sizes(5.0, 15.0, 25.0), at=30.0) == SweepRest(cells=3, seconds=5.0 + 30.0)


def test_a_restart_before_an_interruption_ends_its_cell() -> None:
    before, notes = of_sizes(5.0, 15.0), [restart(25.0), resumed(40.0)]
    assert sweep_rest(SIZES, before, notes=notes, at=40.0).cells == 4


def test_a_cell_without_a_plan_lasts_as_long_as_the_others() -> None:
    assert sweep_rest(CLOSED, started(CLOSED, 0.0), at=3.0) == SweepRest(cells=2, seconds=None)
    assert sweep_rest(CLOSED, started(CLOSED, 0.0), at=3.0).text == "2 cells to come"
    assert sweep_rest(CLOSED, started(CLOSED, 0.0, 12.0), at=16.0) == SweepRest(cells=1, seconds=12.0 + 8.0)


def test_the_last_cell_is_named_and_its_rest_is_never_negative() -> None:
    rest = sweep_rest(CELLS[:1], started(CELLS, 0.0), at=99.0)
    assert rest == SweepRest(cells=0, seconds=0.0)
    assert rest.text == "last cell, about 0:00 left"


def test_skipped_cells_and_warm_ups_are_not_to_come() -> None:
    warmup = StageConfig(request_rate=1.0, num_prompts=8, warmup=True)
    rows = [planned_row(warmup), *started(CELLS, 5.0, first=1)]
    skipped = [SkippedCell.of(cell, at=6.0, stage=1, reason="failed 1 > 0") for cell in CELLS[2:]]
    assert sweep_rest([warmup, *CELLS], rows, skipped=skipped, at=5.0) == SweepRest(cells=1, seconds=20.0)


def test_an_earlier_session_leaves_the_cell_in_which_it_ended() -> None:
    before = started(CELLS, 0.0, 10.0)
    assert sweep_rest(CELLS, before, notes=[resumed(14.0)], at=14.0) == SweepRest(cells=3, seconds=30.0)
    now = [*before, *started(CELLS[1:], 15.0, first=2)]
    assert sweep_rest(CELLS, now, notes=[resumed(14.0)], at=15.0) == SweepRest(cells=2, seconds=30.0)


def test_a_failed_cell_takes_no_time_and_is_repeated_by_the_next_session_only() -> None:
    (failed,) = started(CELLS, 0.0)
    rows = [replace(failed, failure="out of memory")]
    assert sweep_rest(CELLS, rows, at=1.0) == SweepRest(cells=3, seconds=30.0)
    assert sweep_rest(CELLS, rows, notes=[resumed(2.0)], at=2.0) == SweepRest(cells=4, seconds=40.0)
