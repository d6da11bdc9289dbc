"""Judges a growing series of paired differences at planned looks, with one error rate for all of them.

After 3, 4, 6, 8, 12, 16, 24… pairs, one-sided t tests compare the mean difference with half the margin and with the
whole margin (the hypotheses of `verdicts`). Each look spends a part of the error rate (Lan and DeMets, "Discrete
sequential boundaries for clinical trials", Biometrika 70, 1983): by n pairs n²/(n² + 64) of it, so half by 8 pairs, and
never more than all of it, however long the series becomes. The parts are added up, rather than the joint distribution
of the looks integrated as in Pocock (Biometrika 64, 1977) or O'Brien and Fleming (Biometrics 35, 1979): their
boundaries hold for a known variance, and here three or four pairs have to estimate it. The sum is exact for normal
differences of any variance, and needs 5 to 10 % more pairs.

A p-value divided by the part of its look, at its smallest so far, is a p-value at any time at which the series may be
stopped (Johari, Koomen, Pekelis and Walsh, "Always valid inference", Operations Research 70, 2022). So a budget, a kill
or a resumption needs no correction, and Holm's method corrects for the number of metrics and stages as it does for one
look.

Few pairs may agree by chance, or because the same waves of requests bias both runs of each pair in the same way. So the
error from the variation within the runs of a pair counts as one more observation of the spread, if it is larger; its
weight vanishes as pairs are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from servetop.analysis.comparison.compared_metrics import Scale
from servetop.analysis.comparison.verdicts import ERROR_RATE, MIN_STARTS, POWER, Verdict, holm
from servetop.analysis.statistics.student_t import quantile, upper_tail

HALF_SPENT = 8
"""Pairs by which half of the error rate is spent."""
_EVEN = 0.5
MOST_PAIRS = 4096
"""A series that would need more pairs is not predicted."""


def next_look(pairs: int) -> int:
    """Return the number of pairs at the next look after this many: 3, 4, 6, 8, 12, 16, 24 and so on."""
    if pairs < MIN_STARTS:
        return MIN_STARTS
    power = 2
    while power <= pairs:
        power *= 2
    between = power // 4 * 3
    return between if pairs < between else power


def looks(pairs: int) -> Iterator[int]:
    """Yield the numbers of pairs at all looks up to this many."""
    look = next_look(0)
    while look <= pairs:
        yield look
        look = next_look(look)


def spent(pairs: int) -> float:
    """Return the part of the error rate that all looks up to this many pairs may spend, 0 to 1."""
    return pairs**2 / (pairs**2 + HALF_SPENT**2)


def part_of_look(pairs: int) -> float:
    """Return the part of the error rate that the look at this many pairs spends."""
    before = max((look for look in looks(pairs - 1)), default=0)
    return spent(pairs) - spent(before)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceLimits:
    """Half the margin and the whole margin on the scale of the differences; lower ones are negative."""

    half_low: float
    half_high: float
    low: float
    high: float

    @classmethod
    def of(cls, margin: float, scale: Scale) -> DifferenceLimits:
        """Return the limits of a margin; those of relative differences are logarithms."""
        if scale is Scale.ABSOLUTE:
            return cls(half_low=-margin / 2, half_high=margin / 2, low=-margin, high=margin)
        low = math.log1p(-margin) if margin < 1 else -math.inf
        half_low = math.log1p(-margin / 2) if margin < 2 else -math.inf
        return cls(half_low=half_low, half_high=math.log1p(margin / 2), low=low, high=math.log1p(margin))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEvidence:
    """P-values of a series, valid at any time at which it is stopped."""

    rises: float
    """The one-sided p-value of an increase of at most half the margin."""
    falls: float
    """The one-sided p-value of a decrease of at most half the margin."""
    exceeds: float
    """Of a difference of at least the margin, in either direction (one-sided)."""

    @property
    def differs(self) -> float:
        """Two-sided p-value of a difference of at most half the margin."""
        return min(1.0, 2 * min(self.rises, self.falls))

    @property
    def equals(self) -> float:
        """Two-sided p-value of a difference of at least the margin."""
        return min(1.0, 2 * self.exceeds)


def evidence(differences: Sequence[float], limits: DifferenceLimits, *, within: float = 0.0) -> SeriesEvidence:
    """Return the p-values of a series of paired differences, in order of measurement.

    `within` is the standard error of one difference from the variation within its runs; 0 if unknown.
    """
    rises = falls = exceeds = 1.0
    for pairs in looks(len(differences)):
        mean, error = mean_and_error(differences[:pairs], within=within)
        part, df = part_of_look(pairs), pairs - 1
        rises = min(rises, _tail(mean - limits.half_high, error, df) / part)
        falls = min(falls, _tail(limits.half_low - mean, error, df) / part)
        outside = max(_tail(limits.high - mean, error, df), _tail(mean - limits.low, error, df))
        exceeds = min(exceeds, outside / part)
    return SeriesEvidence(rises=rises, falls=falls, exceeds=exceeds)


def sequential_verdicts(series: Sequence[SeriesEvidence], *, higher_is_better: Sequence[bool]) -> list[Verdict]:
    """Return the verdict on each metric and stage of a series.

    The probability of a wrong *better* or *worse* among them is at most ERROR_RATE, and so is that of a wrong *no
    difference seen*.
    """
    differs, equals = holm([each.differs for each in series]), holm([each.equals for each in series])
    found = []
    for each, better_up, differ, equal in zip(series, higher_is_better, differs, equals, strict=True):
        if differ < ERROR_RATE:
            found.append(Verdict.BETTER if (each.rises < each.falls) == better_up else Verdict.WORSE)
        else:
            found.append(Verdict.NO_DIFFERENCE if equal < ERROR_RATE else Verdict.CANNOT_TELL)
    return found


def interval(differences: Sequence[float], *, within: float = 0.0) -> tuple[float, float]:
    """Return the interval of the last look, on the scale of the differences; infinite before the first look.

    All intervals of a series together contain the true difference with a probability of at least 1 - ERROR_RATE.
    """
    pairs = max(looks(len(differences)), default=0)
    if not pairs:
        return -math.inf, math.inf
    mean, error = mean_and_error(differences[:pairs], within=within)
    width = quantile(1 - ERROR_RATE * part_of_look(pairs) / 2, pairs - 1) * error
    return mean - width, mean + width


def pairs_needed(
    spread: float, distance: float, *, tests: int = 1, power: float = POWER, measured: int | None = None
) -> int | None:
    """Return the pairs at the first look that alone answers with this probability; None if there is none.

    `spread` is the standard deviation of the differences, `distance` how far the true one is from the limit that has to
    be excluded, and `tests` the number of metrics and stages. If the spread is an estimate from `measured` pairs, it is
    enlarged in the proportion of the quantiles of Student's t to those of the normal distribution.
    """
    if measured is not None and power > _EVEN:
        spread *= quantile(power, max(measured - 1, 1)) / quantile(power, math.inf)
    pairs = next_look(0)
    while pairs <= MOST_PAIRS:
        level = 1 - ERROR_RATE * part_of_look(pairs) / 2 / tests
        factor = quantile(level, pairs - 1) + quantile(power, pairs - 1)
        if factor * spread <= distance * math.sqrt(pairs):
            return pairs
        pairs = next_look(pairs)
    return None


def mean_and_error(differences: Sequence[float], *, within: float = 0.0) -> tuple[float, float]:
    """Return the mean of at least two differences and its standard error."""
    count = len(differences)
    mean = math.fsum(differences) / count
    squares = math.fsum((each - mean) ** 2 for each in differences)
    variance = max(squares / (count - 1), (squares + within**2) / count)
    return mean, math.sqrt(variance / count)


def _tail(distance: float, error: float, df: int) -> float:
    """Return the probability of a mean at least this far beyond a limit; without any variation 0 or 1."""
    if error > 0:
        return upper_tail(distance / error, df)
    return 0.0 if distance > 0 else 1.0
