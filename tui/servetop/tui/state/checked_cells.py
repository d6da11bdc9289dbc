"""The cells of a sweep that keep or miss their thresholds, at one time of the run."""

from __future__ import annotations

import math

from servetop.analysis.sweep.cell_checks import CellChecks, CheckedCell
from servetop.core.config_values.cell_settings import settings_label
from servetop.core.events import StageChange
from servetop.tui.state.frame import Frame
from servetop.tui.state.sweep_cells import Load, MatrixPlace, load_of


def checked_cells(frame: Frame) -> CellChecks | None:
    """Return the cells whose repeats had all ended at the frame's time; None without thresholds of cells."""
    if frame.checks is None:
        return None
    if frame.end is not None:
        return frame.checks
    ended = ended_stages(frame.stages)
    planned = [(stage.max_num_seqs, load_of(stage)) for stage in frame.header.config.stages if not stage.warmup]
    done = [
        stage
        for cell in frame.checks.cells
        if ended.issuperset(cell.stages) and len(cell.stages) >= sum(_is_of(cell, place) for place in planned)
        for stage in cell.stages
    ]
    return frame.checks.among(done)


def ended_stages(stages: tuple[StageChange, ...] | list[StageChange]) -> set[int]:
    """Return the stages with a load that another one has followed."""
    newest = stages[-1].index if stages else None
    return {stage.index for stage in stages if stage.request_rate is not None and stage.index != newest}


def place_of(cell: CheckedCell) -> MatrixPlace:
    """Return the place of a cell in the matrix."""
    rate, limit = (math.inf if each is None else each for each in (cell.request_rate, cell.max_concurrency))
    return cell.max_num_seqs, Load(rate, limit, settings_label(cell.settings))


def _is_of(cell: CheckedCell, planned: MatrixPlace) -> bool:
    """Whether a planned stage is a repeat of a cell; one without a batch size has the engine's."""
    batch, load = place_of(cell)
    return load == planned[1] and planned[0] in (None, batch)
