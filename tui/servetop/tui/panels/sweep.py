"""Batch size × request rate, filling in as it is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.config import StageConfig
from servetop.core.steady import SteadyWindow
from servetop.tui import formats
from servetop.tui.lines import Row, Run, fitted, placard
from servetop.tui.panels.panel import Panel
from servetop.tui.run_so_far import Moment
from servetop.tui.stage_figures import StageFigures

_WIDTH = 11
"""Cells of a column."""
_MARKS = 3
"""Of them, for marks."""
_Key = tuple[int | None, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One batch size at one rate; repeats are averaged."""

    output_rate: float
    preempted: bool
    unsteady: bool
    """One of its stages is over and had no steady state."""
    going_on: bool


class SweepPanel(Panel):
    """Output tokens/s of every cell that is planned, measured, or being measured."""

    def title(self, moment: Moment) -> Sequence[Row]:  # noqa: ARG002
        """What is in the cells."""
        return [[("Sweep ", "title"), ("output tok/s", "")], [("batch size down, requests/s across", "muted")]]

    def draw(self, moment: Moment, width: int, height: int) -> Sequence[Row]:
        """See `draw_sweep`."""
        cells = measured(moment.per_stage(), moment.steady)
        planned = [_key(stage) for stage in moment.header.config.stages if not stage.warmup]
        if not cells and not planned:
            return placard("no stages planned or measured", width=width, height=height)
        return draw_sweep(cells, planned, width, height)


def measured(figures: Sequence[StageFigures], steady: Mapping[int, SteadyWindow]) -> dict[_Key, Cell]:
    """Stages by batch size and rate, with the steady windows of those that are over."""
    groups: dict[_Key, list[StageFigures]] = {}
    for each in figures:
        if not math.isnan(each.output_rate):
            groups.setdefault((each.stage.max_num_seqs, each.stage.request_rate or 0.0), []).append(each)
    return {
        key: Cell(
            output_rate=float(np.mean([each.output_rate for each in group])),
            preempted=any(each.preemptions > 0 for each in group),
            unsteady=any(_has_none(steady.get(each.stage.index)) for each in group if each.ended),
            going_on=not group[-1].ended,
        )
        for key, group in groups.items()
    }


def draw_sweep(cells: dict[_Key, Cell], planned: Sequence[_Key], width: int, height: int) -> list[Row]:
    """The matrix, with the best finished cell starred and preempting ones marked; the legend below."""
    keys = {*cells, *planned}
    batches = sorted({batch for batch, _ in keys}, key=lambda batch: batch or 0)
    rates = sorted({rate for _, rate in keys})
    done = {key: cell.output_rate for key, cell in cells.items() if not cell.going_on}
    peak = max(done, key=lambda key: done[key], default=None)
    head: Row = [
        (f"{'batch':>8}", "muted"),
        *[(f"{formats.number(rate):>{_WIDTH - _MARKS}}{'':{_MARKS}}", "muted") for rate in rates],
    ]
    rows: list[Row] = [head]
    for batch in batches:
        row: list[Run] = [(f"{formats.exact(batch):>8}", "muted")]
        row += [_shown(cells.get((batch, rate)), (batch, rate) == peak, (batch, rate) in planned) for rate in rates]
        rows.append(row)
    legend: Row = [("★ peak   ▲ preempted   ~ not steady   … measuring now   · to come", "muted")]
    shown: list[Row] = [*rows[: max(height - 2, 1)], [], legend]
    return [fitted(row, width) for row in shown[:height]]


def _shown(cell: Cell | None, best: bool, planned: bool) -> Run:
    if cell is None:
        return (f"{'·' if planned else '':>{_WIDTH - _MARKS}}{'':{_MARKS}}", "faint")
    told = {"★": best, "▲": cell.preempted, "~": cell.unsteady, "…": cell.going_on}
    marks = "".join(mark for mark, holds in told.items() if holds)
    style = "good" if best else ("warn" if cell.preempted else "strong")
    return (f"{formats.count(cell.output_rate):>{_WIDTH - _MARKS}}{marks[:_MARKS]:<{_MARKS}}", style)


def _has_none(window: SteadyWindow | None) -> bool:
    return window is not None and window.start is None


def _key(stage: StageConfig) -> _Key:
    return (stage.max_num_seqs, stage.request_rate)
