"""The cells of a sweep from the exact figures of its stages, and their verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.diagnosis.capacity import KEPT_SHARE
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.summary.summary_types import StageSummary
from servetop.analysis.sweep.cell_checks import CellChecks
from servetop.analysis.sweep.engine_starts import engine_starts
from servetop.analysis.sweep.reference_figures import published_source, with_references
from servetop.analysis.sweep.row_limits import overloaded_stages, row_limits
from servetop.analysis.sweep.start_mean import mean_of_starts
from servetop.analysis.sweep.sweep_cell import CellIntervals, SweepCell
from servetop.analysis.sweep.sweep_verdict import SweepVerdict, sweep_verdict
from servetop.core.config import RunConfig
from servetop.core.events import StageChange


def is_sweep(config: RunConfig, stages: Sequence[StageChange]) -> bool:
    """Whether a run measured at least two cells, each with a constant load of its own.

    A single batch size is a sweep only if its stages drain: else each begins with the requests of the one before.
    """
    if any(stage.ramp_from is not None for stage in config.stages):
        return False
    loads = {StageLoad.of(stage) for stage in stages if stage.request_rate is not None and not stage.warmup}
    return len(loads) > 1 and (config.drain_at_stages or len({load.max_num_seqs for load in loads}) > 1)


def measured_sweep(
    run: RunRecord, stages: Sequence[StageSummary], checks: CellChecks | None = None
) -> SweepVerdict | None:
    """Return the verdict of a sweep by the exact figures of its whole stages; None for other runs, or without any."""
    if not is_sweep(run.header.config, run.stages):
        return None
    objectives = run.header.config.goodput
    attached = run.header.config.engine.url is not None
    starts = engine_starts({stage.stage: stage.start for stage in stages}, run.notes, attached=attached)
    cells = with_references(measured_cells(stages, objectives=objectives, starts=starts), run.header.config)
    if not cells:
        return None
    whole = [stage for cell in cells for stage in cell.stages]
    verdict = sweep_verdict(
        cells, objectives=objectives, limits=row_limits(run, cells), overloaded=overloaded_stages(run, whole)
    )
    return replace(verdict, checks=checks, published=published_source(cells, run.header.config))


def measured_cells(
    stages: Sequence[StageSummary], *, objectives: Mapping[str, float], starts: Mapping[int, int] | None = None
) -> list[SweepCell]:
    """Return the cells that were measured as a whole, by batch size and load; cells of one setting together.

    `starts` has the start of the engine of each stage; None for one start.
    """
    groups: dict[StageLoad, list[StageSummary]] = {}
    for stage in stages:
        if stage.finished and not stage.steered:
            groups.setdefault(load_of(stage), []).append(stage)
    cells = [_cell(group, objectives, starts or {}) for group in groups.values()]
    place = {settings: at for at, settings in enumerate(dict.fromkeys(cell.settings for cell in cells))}

    def order(cell: SweepCell) -> tuple[float, ...]:
        return (
            place[cell.settings],
            cell.max_num_seqs or 0,
            cell.closed,
            cell.load,
            cell.max_concurrency or 0,
        )

    return sorted(cells, key=order)


def load_of(stage: StageSummary) -> StageLoad:
    """Return what all repeats of a cell have in common."""
    rate = math.inf if stage.request_rate is None else stage.request_rate
    return StageLoad(
        request_rate=rate,
        max_concurrency=stage.max_concurrency,
        max_num_seqs=stage.max_num_seqs,
        settings=stage.settings,
    )


def _cell(group: Sequence[StageSummary], objectives: Mapping[str, float], starts: Mapping[int, int]) -> SweepCell:
    first = group[0]
    requests = [stage.measured.requests for stage in group]
    ended = sum(each.completed + each.failed for each in requests)
    good = sum(round((each.request_goodput or 0.0) * each.duration) for each in requests)
    share = good / ended if objectives and ended else None
    numbers = [starts.get(stage.stage, 0) for stage in group]
    means = {name: mean_of_starts(list(map(figure, group)), numbers) for name, figure in _FIGURES.items()}
    preemptions = mean_of_starts([stage.preemptions for stage in group], numbers)
    intervals = CellIntervals(**{name: None if mean is None else mean.interval for name, mean in means.items()})
    return SweepCell(
        max_num_seqs=first.max_num_seqs,
        request_rate=first.request_rate,
        max_concurrency=first.max_concurrency,
        settings=first.settings,
        stages=tuple(stage.stage for stage in group),
        start=first.start,
        share_within=share,
        kept=None if share is None else share >= KEPT_SHARE,
        steady=all(stage.steady.start is not None for stage in group),
        failed=sum(each.failed for each in requests),
        preemptions=None if preemptions is None else preemptions.mean,
        starts=len(set(numbers)),
        intervals=intervals if len(set(numbers)) > 1 else None,
        published=None,
        simulated=None,
        **{name: None if mean is None else mean.mean for name, mean in means.items()},
    )


def _p99(metric: str) -> Callable[[StageSummary], float | None]:
    return lambda stage: stage.measured.requests.latency(metric, "p99")


_FIGURES: Mapping[str, Callable[[StageSummary], float | None]] = {
    "request_throughput": lambda stage: stage.measured.requests.request_throughput,
    "output_throughput": lambda stage: stage.measured.requests.output_throughput,
    "request_goodput": lambda stage: stage.measured.requests.request_goodput,
    "p99_ttft_ms": _p99("ttft"),
    "p99_itl_ms": _p99("itl"),
    "p99_tpot_ms": _p99("tpot"),
    "p99_e2el_ms": _p99("e2el"),
}
"""Figures of a cell that have an interval over starts, by field of SweepCell."""
