"""Compares pairs of runs with equal seeds, metric by metric, by the sequential test; each pair is one observation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.alignment import AlignedStage, ArmRun, align
from servetop.analysis.comparison.compared_metrics import ComparedMetric, Scale
from servetop.analysis.comparison.comparison import ComparisonOptions
from servetop.analysis.comparison.difference import ArmUnit, Basis, Difference, difference
from servetop.analysis.comparison.estimate import estimate
from servetop.analysis.comparison.measured_difference import MeasuredDifference, finite, measured_difference
from servetop.analysis.comparison.sequential import (
    DifferenceLimits,
    SeriesEvidence,
    evidence,
    interval,
    mean_and_error,
    next_look,
    pairs_needed,
    sequential_verdicts,
)
from servetop.analysis.comparison.slices import SlicedStage, sliced, sliced_pair
from servetop.analysis.comparison.undecided import UndecidedReason
from servetop.analysis.comparison.verdicts import Verdict, margin_of

_LIKELY = 0.5
"""Probability with which an expected number of pairs suffices."""
_LOWEST, _HIGHEST = -0.9, 100.0
"""Relative ends of an interval around 0 beyond which it excludes next to nothing."""
MIN_PAIRS = 2
"""Pairs from which a series has an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedMetric:
    """One metric of one load, over all pairs."""

    metric: ComparedMetric
    load: StageLoad
    difference: Difference
    """The mean over the pairs; of one pair, with the error within its runs."""
    margin: float
    """Smallest difference looked for, on the scale of the difference."""
    differences: tuple[float, ...]
    """B - A of each pair, of logarithms for a relative difference."""
    evidence: SeriesEvidence
    within: float
    """Standard error of the first pair's difference, from the variation within its runs; 0 if unknown."""
    verdict: Verdict = Verdict.CANNOT_TELL
    expected: int | None = None
    """Pairs, in all, after which an answer is as likely as not; None if that cannot be estimated."""
    needed: int | None = None
    """Pairs, in all, with which a difference of the margin is found with a probability of POWER."""

    @property
    def spread(self) -> float:
        """Standard deviation of the differences; infinite if there is one whose error is unknown."""
        count = len(self.differences)
        if count == 1:
            return self.difference.error
        return mean_and_error(self.differences, within=self.within)[1] * math.sqrt(count)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the last look, on the scale of `difference.value`; infinite before the first."""
        low, high = interval(self.differences, within=self.within)
        if self.difference.scale is Scale.ABSOLUTE:
            return low, high
        return math.expm1(low), math.expm1(high) if high < math.log(1e9) else math.inf


def paired_difference(each: PairedMetric) -> MeasuredDifference:
    """Return one metric of a series of pairs; an interval that excludes next to nothing has no limits."""
    low, high = each.interval
    wide = each.difference.scale is Scale.RELATIVE and low < 0 < high and (low < _LOWEST or high > _HIGHEST)
    unknown = wide or len(each.differences) < MIN_PAIRS
    return replace(
        measured_difference(each.metric, each.difference, margin=each.margin, verdict=each.verdict),
        low=None if unknown else finite(low),
        high=None if unknown else finite(high),
        more_pairs=None if each.needed is None else each.needed - len(each.differences),
        reason=UndecidedReason.WIDE_INTERVAL if each.verdict is Verdict.CANNOT_TELL else None,
    )


def compare_pairs(a: Sequence[ArmRun], b: Sequence[ArmRun], options: ComparisonOptions) -> tuple[PairedMetric, ...]:
    """Compare run i of A with run i of B, for each load that both have; a metric that was not measured is left out."""
    spread = options.spread_between((*a, *b))
    names = [(first.name, second.name) for first, second in zip(a, b, strict=True)]
    found = []
    for stage in align(a, b):
        pairs = [each for each in (_stage_pair(stage, *pair) for pair in names) if each is not None]
        for metric in options.metrics:
            margin = options.margins.get(metric.key)
            measured = _paired(metric, stage.load, pairs, margin=margin, start_spread=spread.of(metric))
            found += [] if measured is None else [measured]
    return _judged(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _StagePair:
    """One stage of one pair."""

    name: str
    a: SlicedStage
    b: SlicedStage
    same_requests: bool

    def units(self, metric: ComparedMetric) -> tuple[ArmUnit, ArmUnit] | None:
        """Return the estimates of a metric; None unless both runs measured it."""
        first, second = estimate(self.a, metric), estimate(self.b, metric)
        if first is None or second is None:
            return None
        seed = self.a.sample.seed
        return ArmUnit(estimate=first, seed=seed, start=self.name), ArmUnit(estimate=second, seed=seed, start=self.name)


def _stage_pair(stage: AlignedStage, first: str, second: str) -> _StagePair | None:
    """Return the stage in both runs of a pair, the first one if it was repeated; None with too few requests."""
    a, b = (next((each for at, each in arm if at == name), None) for arm, name in ((stage.a, first), (stage.b, second)))
    if a is None or b is None:
        return None
    both = sliced_pair(a, b)
    in_a, in_b = both or (sliced(a), sliced(b))
    if in_a is None or in_b is None:
        return None
    return _StagePair(name=first, a=in_a, b=in_b, same_requests=both is not None)


def _paired(
    metric: ComparedMetric,
    load: StageLoad,
    pairs: Sequence[_StagePair],
    *,
    margin: float | None,
    start_spread: float,
) -> PairedMetric | None:
    """Return one metric over all pairs that measured it, not judged yet; None if none did."""
    measured = [(each, units) for each in pairs if (units := each.units(metric)) is not None]
    if not measured:
        return None
    values = [(a.estimate.value, b.estimate.value) for _, (a, b) in measured]
    first, (a, b) = measured[0]
    alone = difference(metric, [a], [b], same_requests=first.same_requests, start_spread=start_spread)
    positive = all(value > 0 for pair in values for value in pair)
    scale = metric.scale if positive else Scale.ABSOLUTE
    variance = alone.error**2 - alone.start_variance
    within = math.sqrt(max(variance, 0.0)) if alone.scale is scale and math.isfinite(variance) else 0.0
    found = alone if len(values) == 1 else _mean_difference(values, scale, within=within)
    differences = tuple(_apart(*pair, scale) for pair in values)
    limit = margin_of(metric, found, margin=margin)
    return PairedMetric(
        metric=metric,
        load=load,
        difference=found,
        margin=limit,
        differences=differences,
        evidence=evidence(differences, DifferenceLimits.of(limit, scale), within=within),
        within=within,
    )


def _apart(a: float, b: float, scale: Scale) -> float:
    return b - a if scale is Scale.ABSOLUTE else math.log(b / a)


def _mean_difference(values: Sequence[tuple[float, float]], scale: Scale, *, within: float) -> Difference:
    """Return the mean difference of at least two pairs, with the error from the spread of the pairs."""
    mean, error = mean_and_error([_apart(*pair, scale) for pair in values], within=within)
    levels = [_level([pair[arm] for pair in values], scale) for arm in (0, 1)]
    return Difference(
        a=levels[0],
        b=levels[1],
        value=mean if scale is Scale.ABSOLUTE else math.expm1(mean),
        low_error=error,
        high_error=error,
        df=len(values) - 1,
        basis=Basis.PAIRED_STARTS,
        scale=scale,
        start_variance=error**2,
        starts=len(values),
    )


def _level(values: Sequence[float], scale: Scale) -> float:
    if scale is Scale.ABSOLUTE:
        return math.fsum(values) / len(values)
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _judged(found: Sequence[PairedMetric]) -> tuple[PairedMetric, ...]:
    verdicts = sequential_verdicts(
        [each.evidence for each in found], higher_is_better=[each.metric.higher_is_better for each in found]
    )
    tests = verdicts.count(Verdict.CANNOT_TELL)
    judged = [replace(each, verdict=verdict) for each, verdict in zip(found, verdicts, strict=True)]
    return tuple(_with_cost(each, tests=tests) if each.verdict is Verdict.CANNOT_TELL else each for each in judged)


def _with_cost(each: PairedMetric, *, tests: int) -> PairedMetric:
    """Add the number of pairs to expect, and the one to be sure of; the latter grows between half and whole margin."""
    limits = DifferenceLimits.of(each.margin, each.difference.scale)
    count, mean = len(each.differences), math.fsum(each.differences) / len(each.differences)
    half, whole = (limits.half_high, limits.high) if mean > 0 else (-limits.half_low, -limits.low)
    distance = max(abs(mean) - half, whole - abs(mean))
    expected = pairs_needed(each.spread, distance, tests=tests, power=_LIKELY)
    usual = min(distance, limits.high - limits.half_high)
    needed = pairs_needed(each.spread, usual, tests=tests, measured=count + 1)
    next_one = next_look(count)
    return replace(
        each,
        expected=None if expected is None else max(expected, next_one),
        needed=None if needed is None else max(needed, next_one),
    )
