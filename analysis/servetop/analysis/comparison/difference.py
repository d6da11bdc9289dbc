"""The difference of a metric between two arms, each of one or several starts, with its interval.

Starts are the unit: with several, their spread is the error (Student's t; paired where the starts of both arms used
equal seeds), but not less than an assumed spread where an arm has fewer than ENOUGH_STARTS. With one start of each arm,
or two of one, the error is that within the runs, plus the assumed spread. If both runs sent the same requests (equal
seeds), the influences of equal slices are subtracted before their error is computed, so that what the requests have in
common cancels (common random numbers). Otherwise the intervals of both runs are combined by MOVER, which keeps the
asymmetry of percentiles. Relative differences are computed from logarithms.

Sources: Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013 (levels of variation, ratios);
Glasserman and Yao, "Some guidelines and guarantees for common random numbers", Management Science 38 (1992); Zou and
Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27 (2008), for MOVER;
Satterthwaite, Biometrics Bulletin 2 (1946), for degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from servetop.analysis.comparison.compared_metrics import ComparedMetric, Scale
from servetop.analysis.comparison.estimate import CONFIDENCE, Estimate
from servetop.analysis.statistics.batch_means import standard_error
from servetop.analysis.statistics.student_t import quantile
from servetop.core.arrays import FloatArray

MIN_START_DF = 2
"""Degrees of freedom from which on the spread between starts is estimated; with 1 an interval would say nothing."""
ENOUGH_STARTS = 5
"""Starts of each arm from which on their spread alone is the error.

The metrics of real engines have modes and outliers, so a few starts can agree by chance. With fewer than five starts of
each arm, not even a permutation test, which assumes no distribution, could reach 5 % for each of four metrics:
the probability that all of one arm exceed all of the other is 2 / C(2n, n).
"""
_LARGEST_LOG = 20.0
"""A larger factor, of some 500 million, is infinite."""


class Basis(StrEnum):
    """Where the error of a difference comes from."""

    STARTS = "starts"
    """The spread between the starts of each arm."""
    PAIRED_STARTS = "paired starts"
    """The spread of the differences between starts with equal seeds."""
    BLOCKS = "blocks"
    """The variation within two runs."""
    PAIRED_BLOCKS = "paired blocks"
    """The variation of the difference between two runs of the same requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """B - A, as a fraction of A or in the unit of the metric."""

    a: float
    b: float
    value: float
    low_error: float
    """Standard error towards lower values."""
    high_error: float
    df: float
    basis: Basis
    scale: Scale
    within_variance: float = 0.0
    """The part of the variance that longer runs reduce, on the scale of the errors."""
    start_variance: float = 0.0
    """The part that only more starts reduce."""
    starts: int = 1
    """The number of starts of the arm with fewer."""
    shortage: float = 1.0
    """How many times as much data is needed before the error is known at all."""

    @property
    def error(self) -> float:
        """The larger standard error."""
        return max(self.low_error, self.high_error)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that contains the true difference with CONFIDENCE."""
        factor = quantile(0.5 + CONFIDENCE / 2, self.df)
        return self._shown(self._centre - factor * self.low_error), self._shown(self._centre + factor * self.high_error)

    def deviation(self, limit: float) -> tuple[float, float]:
        """Return by how many standard errors the difference is below -limit, and above +limit."""
        low, high = self._inner(-limit), self._inner(limit)
        below = _standardised(low - self._centre, self.high_error)
        above = _standardised(self._centre - high, self.low_error)
        return below, above

    @property
    def _centre(self) -> float:
        return self._inner(self.value)

    def _inner(self, value: float) -> float:
        """Return the value on the scale of the errors: of logarithms for a relative difference."""
        if self.scale is Scale.ABSOLUTE:
            return value
        return math.log1p(value) if value > -1 else -math.inf

    def _shown(self, inner: float) -> float:
        if self.scale is Scale.ABSOLUTE:
            return inner
        return math.expm1(inner) if inner < _LARGEST_LOG else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmUnit:
    """One measurement of an arm: a stage of one start, or one of its repeats."""

    estimate: Estimate
    seed: int
    start: str
    """Identifies the start of the engine."""


def difference(
    metric: ComparedMetric,
    a: Sequence[ArmUnit],
    b: Sequence[ArmUnit],
    *,
    same_requests: bool = False,
    start_spread: float = 0.0,
) -> Difference:
    """Compare two arms of at least one unit each.

    `same_requests` says that the slices of the only two units hold the same requests. `start_spread` is the assumed
    standard deviation between starts, as a fraction: instead of the measured one where there are too few to measure it,
    and the least where there are fewer than ENOUGH_STARTS.
    """
    positive = all(each.estimate.value > 0 for each in (*a, *b))
    scale = metric.scale if positive else Scale.ABSOLUTE
    in_a, in_b = (_by_start(arm, scale) for arm in (a, b))
    of_starts = len(in_a) + len(in_b) - 2 >= MIN_START_DF
    parts = _of_starts(in_a, in_b) if of_starts else _of_blocks(_merged(in_a), _merged(in_b), paired=same_requests)
    level = 1.0 if scale is Scale.RELATIVE else abs(a[0].estimate.value)
    assumed = (start_spread * level) ** 2 * (1 / len(in_a) + 1 / len(in_b))
    measured = max(parts.low_error, parts.high_error) ** 2
    if of_starts:  # only what the measured spread lacks of the assumed one is added
        assumed = max(assumed - measured, 0.0) if min(len(in_a), len(in_b)) < ENOUGH_STARTS else 0.0
    centres = (_merged(in_a).centre, _merged(in_b).centre)
    return Difference(
        a=_level(centres[0], scale),
        b=_level(centres[1], scale),
        value=math.expm1(centres[1] - centres[0]) if scale is Scale.RELATIVE else centres[1] - centres[0],
        low_error=math.sqrt(parts.low_error**2 + assumed),
        high_error=math.sqrt(parts.high_error**2 + assumed),
        df=parts.df if of_starts else _with_known_variance(parts.df, measured, assumed),
        basis=parts.basis,
        scale=scale,
        within_variance=0.0 if of_starts else measured,
        start_variance=measured + assumed if of_starts else assumed,
        starts=min(len(in_a), len(in_b)),
        shortage=max(each.estimate.shortage for each in (*a, *b)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scaled:
    """An estimate on the scale of the errors."""

    centre: float
    low_error: float
    high_error: float
    df: float
    influence: FloatArray
    seed: int

    @classmethod
    def of(cls, unit: ArmUnit, scale: Scale) -> _Scaled:
        each = unit.estimate
        if scale is Scale.ABSOLUTE:
            centre, low, high, influence = each.value, each.low_error, each.high_error, each.influence
        else:
            centre, influence = math.log(each.value), each.influence / each.value
            low, high = _log_errors(each)
        return cls(centre=centre, low_error=low, high_error=high, df=each.error.df, influence=influence, seed=unit.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Errors:
    low_error: float
    high_error: float
    df: float
    basis: Basis


def _log_errors(each: Estimate) -> tuple[float, float]:
    """Standard errors of the logarithm; for a percentile, those of the logarithms of its interval."""
    if each.low_error == each.high_error:
        return each.low_error / each.value, each.high_error / each.value
    factor = quantile(0.5 + CONFIDENCE / 2, each.error.df)
    low = each.value - factor * each.low_error
    return (
        math.log(each.value / low) / factor if low > 0 else math.inf,
        math.log1p(factor * each.high_error / each.value) / factor,
    )


def _by_start(arm: Sequence[ArmUnit], scale: Scale) -> list[_Scaled]:
    """Return the units of an arm, those of one start merged."""
    starts: dict[str, list[_Scaled]] = {}
    for unit in arm:
        starts.setdefault(unit.start, []).append(_Scaled.of(unit, scale))
    return [_merged(units) for units in starts.values()]


def _merged(units: Sequence[_Scaled]) -> _Scaled:
    """Return the mean of independent measurements."""
    if len(units) == 1:
        return units[0]
    low, high = ([getattr(each, name) for each in units] for name in ("low_error", "high_error"))
    variances = [max(pair) ** 2 for pair in zip(low, high, strict=True)]
    return _Scaled(
        centre=math.fsum(each.centre for each in units) / len(units),
        low_error=math.hypot(*low) / len(units),
        high_error=math.hypot(*high) / len(units),
        df=_satterthwaite(variances, [each.df for each in units]),
        influence=units[0].influence,
        seed=units[0].seed,
    )


def _of_blocks(a: _Scaled, b: _Scaled, *, paired: bool) -> _Errors:
    if paired:
        found = standard_error(b.influence - a.influence)
        unknown = math.inf in (a.low_error, a.high_error, b.low_error, b.high_error)
        error = math.inf if unknown else found.value
        return _Errors(low_error=error, high_error=error, df=found.df, basis=Basis.PAIRED_BLOCKS)
    variances = (max(each.low_error, each.high_error) ** 2 for each in (a, b))
    return _Errors(
        low_error=math.hypot(b.low_error, a.high_error),
        high_error=math.hypot(b.high_error, a.low_error),
        df=_satterthwaite(tuple(variances), (a.df, b.df)),
        basis=Basis.BLOCKS,
    )


def _of_starts(a: Sequence[_Scaled], b: Sequence[_Scaled]) -> _Errors:
    """Errors from the spread between starts."""
    pairs = _pairs(a, b)
    if pairs:
        differences = np.array([second.centre - first.centre for first, second in pairs])
        error = float(differences.std(ddof=1)) / math.sqrt(differences.size)
        return _Errors(low_error=error, high_error=error, df=differences.size - 1, basis=Basis.PAIRED_STARTS)
    arms = [np.array([each.centre for each in arm]) for arm in (a, b)]
    df = sum(arm.size - 1 for arm in arms)
    pooled = sum(float(((arm - arm.mean()) ** 2).sum()) for arm in arms) / df
    error = math.sqrt(pooled * sum(1 / arm.size for arm in arms))
    return _Errors(low_error=error, high_error=error, df=df, basis=Basis.STARTS)


def _pairs(a: Sequence[_Scaled], b: Sequence[_Scaled]) -> list[tuple[_Scaled, _Scaled]]:
    """Starts with equal seeds; none unless every start has its own seed and a partner."""
    by_seed = {each.seed: each for each in b}
    seeds = {each.seed for each in a}
    if len(seeds) != len(a) or len(by_seed) != len(b) or seeds != set(by_seed) or len(a) < 2:
        return []
    return [(each, by_seed[each.seed]) for each in a]


def _level(centre: float, scale: Scale) -> float:
    return math.exp(centre) if scale is Scale.RELATIVE else centre


def _satterthwaite(variances: Sequence[float], dfs: Sequence[float]) -> float:
    total = math.fsum(variances)
    if not 0 < total < math.inf:
        return min(dfs)
    return total**2 / math.fsum(variance**2 / df for variance, df in zip(variances, dfs, strict=True))


def _with_known_variance(df: float, estimated: float, known: float) -> float:
    """Return the degrees of freedom of the sum of an estimated and a known variance."""
    if not 0 < estimated < math.inf or not known:
        return df
    return df * ((estimated + known) / estimated) ** 2


def _standardised(distance: float, error: float) -> float:
    if math.isinf(error):
        return -math.inf
    if error > 0:
        return distance / error
    return math.copysign(math.inf, distance) if distance else 0.0
