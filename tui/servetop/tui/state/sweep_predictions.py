"""Figures of the cells of a sweep from elsewhere, predicted or published, and how far they are from the measured."""

from __future__ import annotations

import math
from collections.abc import Mapping

from servetop.analysis.sweep.reference_figures import sets_batch_sizes
from servetop.analysis.sweep.repeat_means import LEAST_SECONDS
from servetop.core.config_values.predicted_cell import PredictedCell
from servetop.core.config_values.published_study import PublishedCell
from servetop.core.text import formats
from servetop.tui.state.frame import Frame
from servetop.tui.state.sweep_cells import Cell, MatrixPlace, load_of, own_batch

PUBLISHED = "†"
"""Stands before a published figure."""
PREEMPTIONS = "▲"
"""Stands before a measured number of preemptions."""
SUSPECT = "?"
"""Stands behind one that contradicts those of other cells, or the offered load."""
LEAST_COMPARED = LEAST_SECONDS
"""Seconds of a cell below which its rate, of whole ticks, is not compared with a prediction."""


def predicted(frame: Frame) -> dict[MatrixPlace, float]:
    """Return the simulator's predictions, output tokens/s by cell."""
    return {_place(frame, each): each.output_throughput for each in frame.header.config.predicted}


def published_texts(frame: Frame, cells: Mapping[MatrixPlace, Cell]) -> dict[MatrixPlace, str]:
    """Return the published output tokens/s by cell, with the measured ones in percent of them, as in `†2,691 98%`.

    Of a study that published no throughput it is the number of preemptions, with the measured one: `†1,294 ▲1,310`.
    """
    if publishes_preemptions(frame):
        return _preemptions(frame, cells)
    found = {}
    for place, (published, rate) in _published(frame).items():
        ratio = _ratio(cells.get(place), rate)
        text = f"{PUBLISHED}{formats.count(rate)}{SUSPECT if published.suspect else ''}"
        found[place] = text if ratio is None else f"{text} {ratio * 100:.0f}%"
    return found


def publishes_preemptions(frame: Frame) -> bool:
    """Whether a study published preemptions of these cells, and no throughput."""
    study = frame.header.config.published
    return study is not None and not _published(frame) and any(each.preemptions is not None for each in study.cells)


def _preemptions(frame: Frame, cells: Mapping[MatrixPlace, Cell]) -> dict[MatrixPlace, str]:
    found = {}
    for published in frame.header.config.published.cells if frame.header.config.published is not None else ():
        if published.preemptions is None:
            continue
        place = _place(frame, published)
        text = f"{PUBLISHED}{formats.count(published.preemptions)}{SUSPECT if published.suspect else ''}"
        cell = cells.get(place)
        known = cell is not None and not cell.running_now and not math.isnan(cell.preemptions)
        found[place] = f"{text} {PREEMPTIONS}{formats.count(cell.preemptions)}" if cell and known else text
    return found


def mean_of_published(frame: Frame, cells: Mapping[MatrixPlace, Cell]) -> float | None:
    """Return the geometric mean of measured / published output tokens/s, without suspect cells; None without any."""
    trusted = {place: rate for place, (cell, rate) in _published(frame).items() if not cell.suspect}
    ratios = [ratio for place, rate in trusted.items() if (ratio := _ratio(cells.get(place), rate))]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _published(frame: Frame) -> dict[MatrixPlace, tuple[PublishedCell, float]]:
    """Return the cells of a study that have an output throughput, with that."""
    study = frame.header.config.published
    cells = () if study is None else study.cells
    return {_place(frame, each): (each, each.output_throughput) for each in cells if each.output_throughput is not None}


def _ratio(cell: Cell | None, published: float) -> float | None:
    """Return measured / published output tokens/s of a finished cell that is long enough; None for others."""
    if cell is None or cell.running_now or cell.seconds < LEAST_COMPARED or not published:
        return None
    return cell.output_rate / published


def _place(frame: Frame, reference: PredictedCell | PublishedCell) -> MatrixPlace:
    """Return the place of a figure in the matrix, whose batch size may be that of the measured engine."""
    size = reference.max_num_seqs if sets_batch_sizes(frame.header.config) else None
    return size or own_batch(frame), load_of(reference)


def deviations(cells: Mapping[MatrixPlace, Cell], prediction: Mapping[MatrixPlace, float]) -> list[float]:
    """Return |predicted / measured - 1| of each finished cell that has a prediction and is long enough."""
    return [
        abs(prediction[key] / cell.output_rate - 1)
        for key, cell in cells.items()
        if key in prediction and cell.output_rate > 0 and not cell.running_now and cell.seconds >= LEAST_COMPARED
    ]
