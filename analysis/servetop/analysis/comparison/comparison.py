"""Compares two arms stage by stage and metric by metric (docs/explanation/comparison.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.alignment import AlignedStage, ArmRun, align
from servetop.analysis.comparison.compared_metrics import METRICS, ComparedMetric, Family
from servetop.analysis.comparison.difference import MIN_START_DF, ArmUnit, Difference, difference
from servetop.analysis.comparison.estimate import estimate
from servetop.analysis.comparison.needed_seconds import needed_seconds
from servetop.analysis.comparison.slices import SlicedStage, sliced, sliced_pair
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.comparison.undecided import UndecidedReason, undecided_reason
from servetop.analysis.comparison.verdicts import (
    Cost,
    Verdict,
    alarm_probability,
    cost_of_answer,
    holm,
    judge,
    margin_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of one stage."""

    metric: ComparedMetric
    difference: Difference | None
    """None if one side has no estimate; then `missing` or `note` says why."""
    margin: float
    """Smallest difference looked for, on the scale of the difference."""
    verdict: Verdict
    needs: Cost | None = None
    """What has to be measured for an answer, if the verdict is *cannot tell* and this can be estimated."""
    probability: float = 1.0
    """Of such a difference if the true one were at most half the margin, corrected for the family."""
    missing: Literal["A", "B"] | None = None
    """The side that did not measure it."""
    note: str = ""
    reason: UndecidedReason | None = None
    """Why the verdict is *cannot tell*; None for other verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageComparison:
    """All metrics of two stages of equal load."""

    load: StageLoad
    seconds: tuple[float, float]
    """Total length of the windows of A and B."""
    requests: tuple[int, int]
    starts: tuple[int, int]
    same_requests: bool
    """Both sent the same requests, and these were compared pairwise."""
    unsteady: str = ""
    """Why a window is not a steady state; empty if all are."""
    needed_seconds: float | None = None
    """Length that the shortest window should have; None if it is long enough, or the spread between starts is known."""
    metrics: tuple[MetricComparison, ...]

    def metric(self, key: str) -> MetricComparison | None:
        """Return the comparison of the metric with this key; None if neither side measured it."""
        return next((each for each in self.metrics if each.metric.key == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of two arms."""

    stages: tuple[StageComparison, ...]
    only_a: tuple[StageLoad, ...] = ()
    """Loads without a counterpart in B."""
    only_b: tuple[StageLoad, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOptions:
    """Metrics, margins and the spread between starts of a comparison."""

    metrics: Sequence[ComparedMetric] = METRICS
    margins: Mapping[str, float] = field(default_factory=dict)
    """Margins by key, instead of those of the metrics."""
    start_spread: StartSpread | None = None
    """What is assumed where there are too few starts; None for that of the runs."""


def compare(a: Sequence[ArmRun], b: Sequence[ArmRun], options: ComparisonOptions | None = None) -> Comparison:
    """Compare arm B with arm A, each of one or several recordings."""
    chosen = options or ComparisonOptions()
    spread = chosen.start_spread
    if spread is None:
        spread = StartSpread.largest(run.start_spread for run in (*a, *b))
    alignment = align(a, b)
    stages = [_compared(stage, chosen, start_spread=spread) for stage in alignment.stages]
    return Comparison(stages=_judged(stages), only_a=alignment.only_a, only_b=alignment.only_b)


def _compared(stage: AlignedStage, options: ComparisonOptions, *, start_spread: StartSpread) -> StageComparison:
    pair = sliced_pair(stage.a[0][1], stage.b[0][1]) if len(stage.a) == len(stage.b) == 1 else None
    arms = _sliced_arms(stage) if pair is None else ([(stage.a[0][0], pair[0])], [(stage.b[0][0], pair[1])])
    metrics = [
        _differing(metric, *arms, options=options, same_requests=pair is not None, start_spread=start_spread)
        for metric in options.metrics
    ]
    samples = ([sample for _, sample in stage.a], [sample for _, sample in stage.b])
    return StageComparison(
        load=stage.load,
        seconds=(sum(each.seconds for each in samples[0]), sum(each.seconds for each in samples[1])),
        requests=(_requests(arms[0]), _requests(arms[1])),
        starts=(len({name for name, _ in stage.a}), len({name for name, _ in stage.b})),
        same_requests=pair is not None,
        unsteady=next((each.reason for arm in samples for each in arm if not each.steady), ""),
        needed_seconds=_too_short(stage),
        metrics=tuple(each for each in metrics if each is not None),
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
) -> MetricComparison | None:
    """Return the difference of a metric, not judged yet; None if neither side measured it."""
    units = [_units(metric, arm) for arm in (a, b)]
    margin = options.margins.get(metric.key, metric.margin)
    if not units[0] and not units[1]:
        return None
    unknown = MetricComparison(metric=metric, difference=None, margin=margin, verdict=Verdict.CANNOT_TELL)
    if not units[0] or not units[1]:
        return replace(unknown, missing="B" if units[0] else "A", reason=UndecidedReason.NOT_MEASURED)
    if _are_too_few(*units):
        return replace(unknown, note=str(UndecidedReason.TOO_FEW_VALUES), reason=UndecidedReason.TOO_FEW_VALUES)
    found = difference(metric, *units, same_requests=same_requests, start_spread=start_spread.of(metric))
    return MetricComparison(
        metric=metric,
        difference=found,
        margin=margin_of(metric, found, margin=options.margins.get(metric.key)),
        verdict=Verdict.CANNOT_TELL,
    )


def _are_too_few(a: Sequence[ArmUnit], b: Sequence[ArmUnit]) -> bool:
    """Whether a value is unknown, so that there is no difference."""
    values = [each.estimate.value for each in (*a, *b)]
    several = max(len(a), len(b)) > 1
    return any(math.isnan(each) or (several and math.isinf(each)) for each in values)


def _units(metric: ComparedMetric, arm: _Arm) -> list[ArmUnit]:
    estimates = [(name, each.sample.seed, estimate(each, metric)) for name, each in arm]
    return [ArmUnit(estimate=each, seed=seed, start=name) for name, seed, each in estimates if each is not None]


def _judged(stages: Sequence[StageComparison]) -> tuple[StageComparison, ...]:
    """Judge all metrics, corrected for the number of metrics and stages of each family."""
    by_family: dict[Family, list[tuple[int, int]]] = {}
    for place, stage in enumerate(stages):
        for position, each in enumerate(stage.metrics):
            if each.difference is not None:
                by_family.setdefault(each.metric.family, []).append((place, position))
    rows = [list(stage.metrics) for stage in stages]
    for places in by_family.values():
        found = [rows[place][position] for place, position in places]
        adjusted = holm([alarm_probability(_known(each), each.margin) for each in found])
        for (place, position), each, probability in zip(places, found, adjusted, strict=True):
            rows[place][position] = _verdict(each, probability, stage=stages[place], tests=len(places))
    return tuple(replace(stage, metrics=tuple(row)) for stage, row in zip(stages, rows, strict=True))


def _verdict(each: MetricComparison, probability: float, *, stage: StageComparison, tests: int) -> MetricComparison:
    found = _known(each)
    verdict = judge(each.metric, found, margin=each.margin, adjusted=probability)
    if verdict is not Verdict.CANNOT_TELL:
        return replace(each, verdict=verdict, probability=probability)
    needs = cost_of_answer(found, margin=each.margin, seconds=min(stage.seconds), tests=tests)
    reason = undecided_reason(
        found,
        margin=each.margin,
        too_short=stage.needed_seconds is not None,
        unsteady=bool(stage.unsteady) and stage.load.ramp_from is None,
    )
    note = "too few values to say how uncertain it is" if reason is UndecidedReason.TOO_FEW_VALUES else ""
    return replace(each, verdict=verdict, probability=probability, needs=needs, note=note, reason=reason)


def _known(each: MetricComparison) -> Difference:
    if each.difference is None:
        raise ValueError(f"{each.metric.key} has no difference")
    return each.difference
