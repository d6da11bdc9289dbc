"""The cells of a sweep by batch size and load: planned, predicted and measured; and the stages outside of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from servetop.analysis.cells.attempts import AttemptState
from servetop.analysis.diagnosis.capacity import KEPT_SHARE
from servetop.analysis.sweep.sweep_cell import SweepCell, best_cell
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.analysis.trust.steady_state import SteadyWindow
from servetop.core.config import StageConfig
from servetop.core.config_values.cell_settings import settings_label
from servetop.core.config_values.predicted_cell import PredictedCell
from servetop.core.config_values.published_study import PublishedCell
from servetop.core.events import StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.units import MS_PER_S
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import METRICS, StageMetrics


@dataclass(frozen=True, slots=True, order=True)
class Load:
    """A constant load; closed loops come after all rates."""

    rate: float
    """Requests/s; inf in a closed loop."""
    concurrency: float = math.inf
    """The limit; inf without one."""
    settings: str = ""
    """What the cell sets besides, as in `in 512`; loads of other settings are in other rows."""

    @property
    def name(self) -> str:
        """`8`, with a concurrency limit `8·c64`, in a closed loop `c64`."""
        rate = "" if math.isinf(self.rate) else f"{self.rate:g}"
        limit = "" if math.isinf(self.concurrency) else f"c{self.concurrency:g}"
        return "·".join(part for part in (rate, limit) if part) or "∞"


PERCENTILE = 99
"""Of the latencies of cells."""
_CONSTANT = 0.05
"""A load is constant if its target changes by no more than this share."""
_BACKLOG_SECONDS = 1.0
"""A stage begins with a backlog if more requests wait than arrive in this time, ..."""
_LEAST_BACKLOG = 5
"""... and at least this many."""
_FAILED = "failed: "
_DIP = 0.95
"""A dip is less than this share of the best throughput at a lower load; smaller differences are noise."""


class StagedRun(Protocol):
    """What cells are made of: a frame, or a baseline."""

    @property
    def header(self) -> RunHeader:
        """The header with the plan."""
        ...

    @property
    def steady(self) -> Mapping[int, SteadyWindow]:
        """Steady windows of finished stages by index."""
        ...

    @property
    def per_stage(self) -> Callable[[], Sequence[StageMetrics]]:
        """Returns the results of the stages with a load."""
        ...


MatrixPlace = tuple[int | None, Load]
"""Batch size and load."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """The results of one batch size at one load; of its repeats the mean."""

    output_rate: float
    preempted: bool
    unsteady: bool
    """A finished stage of this cell had no steady state."""
    running_now: bool
    seconds: float = math.inf
    """The time over which each stage was measured in whole ticks; inf for the exact figures of a sweep that ended."""
    repeats: int = 1
    """Stages that were averaged."""
    histograms: Mapping[str, LogHistogram]
    """Latencies of all repeats, by metric of `METRICS`."""
    goodput: float = math.nan
    """Requests/s that met all objectives; NaN without objectives."""
    share: float = math.nan
    """Fraction of the requests that met all objectives; NaN without objectives."""
    preemptions: float = math.nan
    """Of the repeats the mean; NaN if the engine does not count them."""
    exact: Mapping[str, float | None] = field(default_factory=dict)
    """Exact 99th percentiles in seconds by metric, which take the place of those of `histograms`."""

    def p99(self, metric: str) -> float:
        """Return the 99th percentile of a latency in seconds; NaN if nothing was measured."""
        if metric in self.exact:
            found = self.exact[metric]
            return math.nan if found is None else found
        return self.histograms[metric].percentile(PERCENTILE)

    @property
    def missed(self) -> bool:
        """Whether too few requests met all objectives."""
        return self.share < KEPT_SHARE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OtherStage:
    """A stage that no cell contains, because its load was not constant or not the only one."""

    stage: StageMetrics
    reason: str


def load_of(stage: StageConfig | StageChange | PredictedCell | PublishedCell | SweepCell | SkippedCell) -> Load:
    """Return the load of a stage with a rate."""
    rate, limit = (math.inf if each is None else each for each in (stage.request_rate, stage.max_concurrency))
    return Load(rate, limit, settings_label(stage.settings))


def key_of(stage: StageChange) -> MatrixPlace:
    """Return the place of a stage in the matrix, which holds all repeats of a cell."""
    return stage.max_num_seqs, load_of(stage)


def planned_cells(frame: Frame) -> list[MatrixPlace]:
    """Return the cells of the plan; stages without a batch size have that of the first stage that ran."""
    own, failed = own_batch(frame), failed_cells(frame)
    within = {key_of(each.stage) for each in frame.per_stage()} - {key_of(each.stage.stage) for each in others(frame)}
    apart = {key_of(each.stage.stage) for each in others(frame)} - within - failed
    keys = [
        (stage.max_num_seqs or own, load_of(stage))
        for stage in frame.header.config.stages
        if not stage.warmup and stage.ramp_from is None
    ]
    return [key for key in keys if key not in apart]


def failed_cells(frame: Frame) -> set[MatrixPlace]:
    """Return the cells that could not be measured; without an engine, the batch size is that of the first stage."""
    failed = [each.stage.stage for each in others(frame) if each.reason.startswith(_FAILED)]
    return {(stage.max_num_seqs or own_batch(frame), load_of(stage)) for stage in failed}


def skipped_cells(frame: Frame) -> set[MatrixPlace]:
    """Return the cells that were skipped because their row had ended."""
    return {(each.max_num_seqs or own_batch(frame), load_of(each)) for each in frame.skipped}


def own_batch(frame: Frame) -> int | None:
    """Return the batch size of the first stage that ran."""
    return next((each.stage.max_num_seqs for each in frame.per_stage() if not math.isnan(each.output_rate)), None)


def others(run: StagedRun) -> list[OtherStage]:
    """Stages that are not comparable with those of the same rate, with the reason, in their order."""
    found = []
    for each in run.per_stage():
        if each.attempt.counts and (reason := _why_other(each)):
            found.append(OtherStage(stage=each, reason=reason))
    return found


def _why_other(figures: StageMetrics) -> str:
    stage = figures.stage
    if figures.attempt.state is AttemptState.FAILED and figures.ended:
        return f"{_FAILED}{figures.attempt.reason}"
    if math.isnan(figures.output_rate):
        return ""
    if figures.attempt.steered:
        return figures.attempt.steered
    if stage.ramp_from is not None:
        return "ramp"
    begin, end = figures.target_rates
    if math.isfinite(begin) and math.isfinite(end) and abs(end - begin) > _CONSTANT * max(begin, end):
        return f"rate not constant: {begin:.3g} to {end:.3g}"
    if (
        figures.concurrency_limits[0] != figures.concurrency_limits[1]
        and not np.isnan(figures.concurrency_limits).all()
    ):
        return "concurrency limit changed"
    rate = stage.request_rate
    enough = _LEAST_BACKLOG if rate is None or math.isinf(rate) else max(_LEAST_BACKLOG, rate * _BACKLOG_SECONDS)
    if math.isfinite(begin) and figures.backlog > enough:
        return f"after overload: {figures.backlog:.0f} were waiting at its start"
    return ""


def measured(run: StagedRun) -> dict[MatrixPlace, Cell]:
    """Cells of the stages with a constant load of their own, by batch size and load."""
    apart = {id(each.stage) for each in others(run)}
    groups: dict[MatrixPlace, list[StageMetrics]] = {}
    for each in run.per_stage():
        if not math.isnan(each.output_rate) and id(each) not in apart and each.attempt.counts:
            groups.setdefault(key_of(each.stage), []).append(each)
    return {key: _cell(group, run.steady) for key, group in groups.items()}


def _cell(group: Sequence[StageMetrics], steady: Mapping[int, SteadyWindow]) -> Cell:
    return Cell(
        output_rate=float(np.mean([each.output_rate for each in group])),
        preempted=any(each.preemptions > 0 for each in group),
        preemptions=float(np.mean([each.preemptions for each in group])),
        unsteady=any(_has_none(steady.get(each.stage.index)) for each in group if each.ended),
        running_now=not group[-1].ended,
        seconds=min(each.busy_seconds for each in group),
        repeats=len(group),
        histograms={name: LogHistogram.merged([each.histograms[name] for each in group]) for name in METRICS},
        goodput=float(np.mean([each.goodput for each in group])),
        share=float(np.mean([each.attainment.window_served for each in group])),
    )


def exact_cells(cells: Mapping[MatrixPlace, Cell], sweep: SweepVerdict | None) -> dict[MatrixPlace, Cell]:
    """Return the cells with the exact figures of a sweep that has ended, as the summary prints them."""
    if sweep is None:
        return dict(cells)
    known = {(each.max_num_seqs, load_of(each)): each for each in sweep.cells}
    return {key: _exact(cell, known[key]) if key in known else cell for key, cell in cells.items()}


def _exact(cell: Cell, found: SweepCell) -> Cell:
    tails = {"ttft": found.p99_ttft_ms, "itl": found.p99_itl_ms, "tpot": found.p99_tpot_ms, "e2el": found.p99_e2el_ms}
    return replace(
        cell,
        output_rate=found.output_throughput or 0.0,
        seconds=math.inf,
        repeats=len(found.stages),
        goodput=math.nan if found.request_goodput is None else found.request_goodput,
        share=math.nan if found.share_within is None else found.share_within,
        preemptions=cell.preemptions if found.preemptions is None else found.preemptions,
        exact={name: None if value is None else value / MS_PER_S for name, value in tails.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScoredCell:
    key: MatrixPlace
    max_num_seqs: int | None
    output_throughput: float
    request_goodput: float
    kept: bool


def best_key(cells: Mapping[MatrixPlace, Cell]) -> MatrixPlace | None:
    """Return the best finished cell, as the verdict of a sweep chooses it; None if none keeps the objectives."""
    done = {key: cell for key, cell in cells.items() if not cell.running_now}
    scored = [
        _ScoredCell(
            key=key,
            max_num_seqs=key[0],
            output_throughput=cell.output_rate,
            request_goodput=cell.goodput,
            kept=cell.share >= KEPT_SHARE,
        )
        for key, cell in done.items()
    ]
    best = best_cell(scored, objectives=any(not math.isnan(cell.share) for cell in done.values()))
    return None if best is None else best.key


def rates_before(cells: Mapping[MatrixPlace, Cell], baseline: StagedRun) -> dict[MatrixPlace, float]:
    """Return the baseline's output tokens/s by cell of the run.

    If no batch size is common, it may be the change itself: then each load has that of the same load.
    """
    before = {key: cell.output_rate for key, cell in measured(baseline).items() if not cell.running_now}
    if cells.keys() & before.keys():
        return before
    by_load = {load: rate for (_, load), rate in before.items()}
    return {key: by_load[key[1]] for key in cells if key[1] in by_load}


def _has_none(window: SteadyWindow | None) -> bool:
    return window is not None and window.start is None


def dips(done: Mapping[MatrixPlace, float]) -> set[MatrixPlace]:
    """Finished cells with clearly less throughput than their row at a lower load."""

    def lower(batch: int | None, load: Load) -> list[float]:
        row = [(each, rate) for (size, each), rate in done.items() if (size, each.settings) == (batch, load.settings)]
        return [rate for each, rate in row if each < load]

    return {place for place, rate in done.items() if rate < _DIP * max(lower(*place), default=0.0)}
