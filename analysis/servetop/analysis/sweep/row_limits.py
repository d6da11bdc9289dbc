"""What the overloads of a sweep's stages tell: which cells were overloaded, and what limits each batch size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from servetop.analysis.diagnosis.episode import Episode
from servetop.analysis.diagnosis.overload_intervals import sustainable_interval
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunVerdict, longest_overload
from servetop.analysis.sweep.batch_rows import RowKey, RowLimit, grouped
from servetop.analysis.sweep.sweep_cell import SweepCell


def row_limits(run: RunRecord, cells: Sequence[SweepCell]) -> dict[RowKey, RowLimit]:
    """Return the limit of each batch size that was overloaded, by the capacity that the run's verdict computes.

    Without an estimate where the cells send different requests.
    """
    periods = stage_periods(run)
    alike = len({cell.settings for cell in cells}) == 1  # the model of the engine is of one kind of requests
    found = {}
    for key, row in grouped(cells).items():
        verdict = _overload(run, [periods[stage] for cell in row for stage in cell.stages])
        if verdict is not None:
            interval = verdict.sustainable_interval
            if interval is not None and verdict.main is not None:  # narrowed by loads of other batch sizes too
                interval = sustainable_interval(verdict.sustainable, verdict.main, run)
            found[key] = RowLimit(
                limit=verdict.cause.value,
                estimate=verdict.sustainable if alike and not verdict.is_lower_bound else None,
                interval=interval,
                advised_batch=verdict.advised_batch,
            )
    return found


def overloaded_stages(run: RunRecord, stages: Iterable[int]) -> frozenset[int]:
    """Return the stages during which the engine was overloaded."""
    periods = stage_periods(run)
    return frozenset(stage for stage in stages if _overload(run, [periods[stage]]) is not None)


def stage_periods(run: RunRecord) -> Mapping[int, tuple[float, float]]:
    """Return the start of each stage, and the start of the next one or the end of the run."""
    starts: dict[int, float] = {}
    for stage in run.stages:
        starts.setdefault(stage.index, stage.at)
    ends = [*sorted(starts.values())[1:], max(run.until, *starts.values())] if starts else []
    ordered = sorted(starts, key=lambda index: starts[index])
    return {index: (starts[index], end) for index, end in zip(ordered, ends, strict=True)}


def _overload(run: RunRecord, periods: Sequence[tuple[float, float]]) -> RunVerdict | None:
    """Return the longest overload of the episodes that began in some periods, each up to the end of its period."""
    episodes: list[Episode] = []
    for start, until in periods:
        began = (each for each in run.episodes if start <= each.begin < until)
        episodes += [each if each.end is not None and each.end <= until else replace(each, end=until) for each in began]
    within = replace(run, episodes=tuple(sorted(episodes, key=lambda each: each.begin)))
    return longest_overload(within, loaded=sum(until - start for start, until in periods))
