"""How much the starts of the engine differ in the cells of a sweep, so far or at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from servetop.analysis.cells.attempts import AttemptState
from servetop.analysis.sweep.repeat_means import Repeat, repeat_means
from servetop.analysis.sweep.start_mean import spread_text
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.tui.state.frame import Frame
from servetop.tui.state.sweep_cells import MatrixPlace, key_of, load_of, others


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpreads:
    """The intervals of repeated cells over starts of the engine."""

    texts: Mapping[MatrixPlace, str] = field(default_factory=dict)
    """Half of the 95 % interval of the output tokens/s, as in `±94 of 3`; none of cells of one start.

    Of an interval that begins at 0 it is the upper end, as in `≤767 of 2`.
    """
    one_start: bool = False
    """Whether no cell was measured in two starts."""


def sweep_spreads(frame: Frame) -> SweepSpreads:
    """Return the exact intervals of a sweep that has ended and is read, else those of the repeats that have ended."""
    return _so_far(frame) if frame.sweep is None else _exact(frame.sweep)


def _exact(sweep: SweepVerdict) -> SweepSpreads:
    found = {}
    for cell in sweep.cells:
        ends = None if cell.intervals is None else cell.intervals.output_throughput
        if ends is not None and cell.output_throughput is not None:
            found[cell.max_num_seqs, load_of(cell)] = _text(cell.output_throughput, ends, starts=cell.starts)
    return SweepSpreads(texts=found, one_start=all(cell.starts == 1 for cell in sweep.cells))


def _so_far(frame: Frame) -> SweepSpreads:
    if not frame.header.config.drain_at_stages:
        return SweepSpreads()
    apart = {id(each.stage) for each in others(frame)}
    cells: dict[MatrixPlace, list[Repeat]] = {}
    for each in frame.per_stage():
        if each.ended and each.attempt.state is AttemptState.WHOLE and id(each) not in apart:
            repeat = Repeat(stage=each.stage, output_rate=each.output_rate, seconds=each.busy_seconds)
            cells.setdefault(key_of(each.stage), []).append(repeat)
    means = repeat_means(cells, frame.notes, attached=frame.header.config.engine.url is not None)
    texts = {
        place: _text(mean.mean, mean.interval, starts=mean.starts)
        for place, mean in means.items()
        if mean.interval is not None
    }
    return SweepSpreads(texts=texts)


def _text(mean: float, interval: tuple[float, float], *, starts: int) -> str:
    return f"{spread_text(mean, interval)} of {starts}"
