"""Compares two arms stage by stage and metric by metric (docs/explanation/comparison.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.alignment import AlignedStage, ArmRun, align
from servetop.analysis.comparison.compared_metrics import METRICS, ComparedMetric, Family
from servetop.analysis.comparison.difference import MIN_START_DF, ArmUnit, Difference, difference
from servetop.analysis.comparison.estimate import estimate
from servetop.analysis.comparison.measured_difference import MeasuredDifference, measured_difference, with_cost
from servetop.analysis.comparison.needed_seconds import needed_seconds
from servetop.analysis.comparison.report_types import ComparedStage
from servetop.analysis.comparison.slices import SlicedStage, sliced, sliced_pair
from servetop.analysis.comparison.start_spread import SAME, StartSpread
from servetop.analysis.comparison.undecided import UndecidedReason, undecided_reason
from servetop.analysis.comparison.verdicts import (
    Verdict,
    alarm_probability,
    cost_of_answer,
    holm,
    judge,
    margin_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of two arms."""

    stages: tuple[ComparedStage, ...]
    only_a: tuple[StageLoad, ...] = ()
    """Loads without a counterpart in B."""
    only_b: tuple[StageLoad, ...] = ()
    start_spread: StartSpread = SAME
    """The spread between starts that is assumed where there are too few of them."""
    causes: Sequence[str] = ()
    """What else than the change may have caused a difference, one phrase each; of a run and its baseline."""
    headline: str = ""
    """The result in one sentence, with the command that would tell more if there is one; of a run and its baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOptions:
    """Metrics, margins and the spread between starts of a comparison."""

    metrics: Sequence[ComparedMetric] = METRICS
    margins: Mapping[str, float] = field(default_factory=dict)
    """Margins by key, instead of those of the metrics."""
    start_spread: StartSpread | None = None
    """What is assumed where there are too few starts; None for that of the runs."""
    names: tuple[str, str] = ("A", "B")
    """What A and B are called in notes."""

    def spread_between(self, runs: Iterable[ArmRun]) -> StartSpread:
        """Return what is assumed between the starts of these runs."""
        return self.start_spread or StartSpread.largest(run.start_spread for run in runs)


def compare(a: Sequence[ArmRun], b: Sequence[ArmRun], options: ComparisonOptions | None = None) -> Comparison:
    """Compare arm B with arm A, each of one or several recordings."""
    chosen, aligned = options or ComparisonOptions(), align(a, b)
    spread = chosen.spread_between((*a, *b))
    stages = [_compared(stage, chosen, start_spread=spread) for stage in aligned if stage.a and stage.b]
    return Comparison(
        stages=_judged(stages),
        only_a=tuple(stage.load for stage in aligned if not stage.b),
        only_b=tuple(stage.load for stage in aligned if not stage.a),
        start_spread=spread,
    )


def _compared(stage: AlignedStage, options: ComparisonOptions, *, start_spread: StartSpread) -> ComparedStage:
    """Return a stage with the differences of its metrics, which are not judged yet."""
    load, samples = stage.load, [sample for _, sample in (*stage.a, *stage.b)]
    pair = sliced_pair(stage.a[0][1], stage.b[0][1]) if len(stage.a) == len(stage.b) == 1 else None
    a, b = _sliced_arms(stage) if pair is None else ([(stage.a[0][0], pair[0])], [(stage.b[0][0], pair[1])])
    metrics = [
        _differing(metric, a, b, options=options, same_requests=pair is not None, start_spread=start_spread)
        for metric in options.metrics
    ]
    measured = tuple(each for each in metrics if each is not None)
    keys = {each.key for each in measured}
    return ComparedStage(
        load=load,
        label=load.label,
        request_rate=load.request_rate,
        ramp_from=load.ramp_from,
        max_concurrency=load.max_concurrency,
        max_num_seqs=load.max_num_seqs,
        seconds_a=sum(sample.seconds for _, sample in stage.a),
        seconds_b=sum(sample.seconds for _, sample in stage.b),
        requests_a=_requests(a),
        requests_b=_requests(b),
        starts_a=len({name for name, _ in stage.a}),
        starts_b=len({name for name, _ in stage.b}),
        same_requests=pair is not None,
        unsteady=next((sample.reason for sample in samples if not sample.steady), ""),
        needed_seconds=_too_short(stage),
        not_measured=tuple(metric.key for metric in options.metrics if metric.key not in keys),
        metrics=measured,
    )


def _too_short(stage: AlignedStage) -> float | None:
    """Return the length that the windows need, if one is shorter; None with starts enough to know their spread."""
    if len({name for name, _ in stage.a}) + len({name for name, _ in stage.b}) - 2 >= MIN_START_DF:
        return None
    samples = [sample for _, sample in (*stage.a, *stage.b)]
    needed = max(map(needed_seconds, samples))
    return needed if min(each.seconds for each in samples) < needed else None


_Arm = list[tuple[str, SlicedStage]]


def _sliced_arms(stage: AlignedStage) -> tuple[_Arm, _Arm]:
    a, b = ([(name, sliced(sample)) for name, sample in arm] for arm in (stage.a, stage.b))
    return [(n, s) for n, s in a if s is not None], [(n, s) for n, s in b if s is not None]


def _requests(arm: _Arm) -> int:
    return sum(each.chosen.size for _, each in arm)


def _differing(
    metric: ComparedMetric,
    a: _Arm,
    b: _Arm,
    *,
    options: ComparisonOptions,
    same_requests: bool,
    start_spread: StartSpread,
) -> MeasuredDifference | None:
    """Return the difference of a metric, not judged yet; None if neither side measured it."""
    units = [_units(metric, arm) for arm in (a, b)]
    wanted = options.margins.get(metric.key)
    if not units[0] and not units[1]:
        return None
    if all(units) and not _are_too_few(*units):
        found = difference(metric, *units, same_requests=same_requests, start_spread=start_spread.of(metric))
        return measured_difference(metric, found, margin=margin_of(metric, found, margin=wanted))
    unknown = measured_difference(metric, None, margin=metric.margin if wanted is None else wanted)
    if all(units):
        reason, note = UndecidedReason.TOO_FEW_VALUES, str(UndecidedReason.TOO_FEW_VALUES)
    else:
        reason, note = UndecidedReason.NOT_MEASURED, f"not measured in {options.names[1 if units[0] else 0]}"
    return replace(unknown, probability=1.0, reason=reason, note=note)


def _are_too_few(a: Sequence[ArmUnit], b: Sequence[ArmUnit]) -> bool:
    """Whether a value is unknown, so that there is no difference."""
    values = [each.estimate.value for each in (*a, *b)]
    several = max(len(a), len(b)) > 1
    return any(math.isnan(each) or (several and math.isinf(each)) for each in values)


def _units(metric: ComparedMetric, arm: _Arm) -> list[ArmUnit]:
    estimates = [(name, each.sample.seed, estimate(each, metric)) for name, each in arm]
    return [ArmUnit(estimate=each, seed=seed, start=name) for name, seed, each in estimates if each is not None]


def _judged(stages: Sequence[ComparedStage]) -> tuple[ComparedStage, ...]:
    """Judge all metrics, corrected for the number of metrics and stages of each family."""
    by_family: dict[Family, list[tuple[int, int]]] = {}
    for place, stage in enumerate(stages):
        for position, each in enumerate(stage.metrics):
            if each.found is not None:
                by_family.setdefault(each.family, []).append((place, position))
    rows = [list(stage.metrics) for stage in stages]
    for places in by_family.values():
        found = [rows[place][position] for place, position in places]
        adjusted = holm([alarm_probability(_known(each), each.margin) for each in found])
        for (place, position), each, probability in zip(places, found, adjusted, strict=True):
            rows[place][position] = _verdict(each, probability, stage=stages[place], tests=len(places))
    return tuple(replace(stage, metrics=tuple(row)) for stage, row in zip(stages, rows, strict=True))


def _verdict(each: MeasuredDifference, probability: float, *, stage: ComparedStage, tests: int) -> MeasuredDifference:
    found = _known(each)
    verdict = judge(found, margin=each.margin, adjusted=probability, higher_is_better=each.higher_is_better)
    if verdict is not Verdict.CANNOT_TELL:
        return replace(each, verdict=verdict, probability=probability)
    needs = cost_of_answer(found, margin=each.margin, seconds=min(stage.seconds), tests=tests)
    reason = undecided_reason(
        found,
        margin=each.margin,
        too_short=stage.needed_seconds is not None,
        unsteady=bool(stage.unsteady) and stage.ramp_from is None,
    )
    note = "too few values to say how uncertain it is" if reason is UndecidedReason.TOO_FEW_VALUES else ""
    undecided = replace(each, probability=probability, note=note, reason=reason)
    return undecided if needs is None else with_cost(undecided, needs)


def _known(each: MeasuredDifference) -> Difference:
    if each.found is None:
        raise ValueError(f"{each.key} has no difference")
    return each.found
