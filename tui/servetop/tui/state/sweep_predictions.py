"""What the simulator predicted of the cells of a sweep, and how far that is from what was measured."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.sweep.repeat_means import LEAST_SECONDS
from servetop.tui.state.frame import Frame
from servetop.tui.state.sweep_cells import Cell, MatrixPlace, load_of

LEAST_COMPARED = LEAST_SECONDS
"""Seconds of a cell below which its rate, of whole ticks, is not compared with a prediction."""


def predicted(frame: Frame) -> dict[MatrixPlace, float]:
    """Return the simulator's predictions, output tokens/s by cell."""
    return {(each.max_num_seqs, load_of(each)): each.output_throughput for each in frame.header.config.predicted}


def deviations(cells: Mapping[MatrixPlace, Cell], prediction: Mapping[MatrixPlace, float]) -> list[float]:
    """Return |predicted / measured - 1| of each finished cell that has a prediction and is long enough."""
    return [
        abs(prediction[key] / cell.output_rate - 1)
        for key, cell in cells.items()
        if key in prediction and cell.output_rate > 0 and not cell.running_now and cell.seconds >= LEAST_COMPARED
    ]
