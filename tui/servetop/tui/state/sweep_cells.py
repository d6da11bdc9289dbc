"""The cells of a sweep by batch size and request rate: planned, predicted and measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.verdicts.steady_state import SteadyWindow
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import StageMetrics

CellKey = tuple[int | None, float]
"""Batch size, and requests per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The results of one batch size at one rate; the mean of its repeats."""

    output_rate: float
    preempted: bool
    unsteady: bool
    """A finished stage of this cell had no steady state."""
    running_now: bool


def planned_cells(frame: Frame) -> list[CellKey]:
    """The cells of the plan; stages without a batch size have that of the first stage that ran."""
    own = next((each.stage.max_num_seqs for each in frame.per_stage() if not math.isnan(each.output_rate)), None)
    stages = [stage for stage in frame.header.config.stages if not stage.warmup]
    return [(stage.max_num_seqs or own, stage.request_rate) for stage in stages]


def predicted(frame: Frame) -> dict[CellKey, float]:
    """The simulator's predictions, output tokens/s by cell."""
    return {(each.max_num_seqs, each.request_rate): each.output_throughput for each in frame.header.config.predicted}


def deviations(cells: Mapping[CellKey, Cell], prediction: Mapping[CellKey, float]) -> list[float]:
    """

    predicted / measured - 1
    of each finished cell that has a prediction.
    """
    return [
        abs(prediction[key] / cell.output_rate - 1)
        for key, cell in cells.items()
        if key in prediction and cell.output_rate > 0 and not cell.running_now
    ]


def measured(stages: Sequence[StageMetrics], steady: Mapping[int, SteadyWindow]) -> dict[CellKey, Cell]:
    """Measured stages by cell, with the steady windows of those that have ended."""
    groups: dict[CellKey, list[StageMetrics]] = {}
    for each in stages:
        if not math.isnan(each.output_rate):
            groups.setdefault((each.stage.max_num_seqs, each.stage.request_rate or 0.0), []).append(each)
    return {
        key: Cell(
            output_rate=float(np.mean([each.output_rate for each in group])),
            preempted=any(each.preemptions > 0 for each in group),
            unsteady=any(_has_none(steady.get(each.stage.index)) for each in group if each.ended),
            running_now=not group[-1].ended,
        )
        for key, group in groups.items()
    }


def _has_none(window: SteadyWindow | None) -> bool:
    return window is not None and window.start is None
