"""Verdicts on differences, corrected for their number, and what an answer would cost.

Two hypotheses are distinguished: the difference is at most half the margin, or at least the margin (an indifference
zone, as in Bechhofer's ranking and selection, Annals of Mathematical Statistics 25, 1954). *Better* and *worse* reject
the first: the difference is larger than half the margin. *No difference seen* rejects the second: the whole interval
lies within the margin. The errors of better and worse are corrected for the number of metrics and stages of a family by
Holm's method (Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from servetop.analysis.comparison.compared_metrics import ComparedMetric, Scale
from servetop.analysis.comparison.difference import Basis, Difference
from servetop.analysis.statistics.student_t import quantile, upper_tail

ERROR_RATE = 0.05
"""Largest probability of a wrong *better* or *worse* in a family of metrics."""
POWER = 0.95
"""Probability of finding a difference of the margin, once what the cost names has been measured."""
MIN_STARTS = 3
"""Starts of each configuration below which their spread is hardly known."""

MOST_SECONDS, MOST_STARTS = 4 * 3600.0, 100
"""Costs beyond which an estimate is a guess, and another way of measuring is better."""


class Verdict(StrEnum):
    """What a comparison says about one metric."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference seen"
    """The difference is smaller than the margin."""
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What has to be measured in addition, of each of the two configurations, to find a difference of the margin."""

    starts: int = 0
    """More starts, each as long as those measured."""
    seconds: float = 0.0
    """More seconds of the stage in the same start."""

    @property
    def more_than(self) -> str:
        """What it costs at least if it is beyond reach: `4 h` or `100 starts`; empty otherwise."""
        if self.starts > MOST_STARTS:
            return f"{MOST_STARTS} starts"
        return f"{MOST_SECONDS / 3600:g} h" if self.seconds > MOST_SECONDS else ""


def margin_of(metric: ComparedMetric, difference: Difference, *, margin: float | None = None) -> float:
    """Return the margin on the scale of the difference: the metric's or `margin`, but never below its floor."""
    wanted = metric.margin if margin is None else margin
    level = abs(difference.a)
    if difference.scale is Scale.RELATIVE:
        return max(wanted, metric.floor / level) if level > 0 else wanted
    if metric.scale is Scale.RELATIVE:  # one of the values is 0
        return max(wanted * max(level, abs(difference.b)), metric.floor)
    return max(wanted, metric.floor)


def holm(probabilities: Sequence[float]) -> list[float]:
    """Return the probabilities adjusted by Holm's method, in the given order."""
    order = sorted(range(len(probabilities)), key=lambda place: probabilities[place])
    adjusted, largest = [1.0] * len(probabilities), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * probabilities[place]))
        adjusted[place] = largest
    return adjusted


def alarm_probability(difference: Difference, margin: float) -> float:
    """Return the probability of such a difference if the true one is at most half the margin (two-sided)."""
    return min(1.0, 2 * upper_tail(max(difference.deviation(margin / 2)), difference.df))


def judge(difference: Difference, *, margin: float, adjusted: float, higher_is_better: bool) -> Verdict:
    """Return the verdict; `adjusted` is the alarm probability after the correction for the number of metrics."""
    if adjusted < ERROR_RATE:
        rises = difference.value > 0
        return Verdict.BETTER if rises == higher_is_better else Verdict.WORSE
    low, high = difference.interval
    return Verdict.NO_DIFFERENCE if -margin < low and high < margin else Verdict.CANNOT_TELL


def cost_of_answer(difference: Difference, *, margin: float, seconds: float, tests: int) -> Cost | None:
    """Return what has to be measured to find a difference of the margin with POWER; None if it cannot be estimated.

    `seconds` is the length of the shorter window, `tests` the number of metrics and stages of the family. Longer runs
    reduce the variation within the runs only. The quantiles are those of the degrees of freedom measured so far, which
    keeps the power although the variance is an estimate (Stein, Annals of Mathematical Statistics 16, 1945).
    """
    half = (math.log1p(margin) if difference.scale is Scale.RELATIVE else margin) / 2
    target = _target_variance(half, df=difference.df, tests=tests)
    within, between = difference.within_variance, difference.start_variance
    if difference.shortage > 1:
        return Cost(seconds=seconds * (difference.shortage - 1))
    if not (within + between > 0 and math.isfinite(within + between)):
        return None
    if difference.basis in (Basis.BLOCKS, Basis.PAIRED_BLOCKS) and between < target / 2:
        return Cost(seconds=max(1.0, seconds * (within / (target - between) - 1)))
    needed = math.ceil((within + between) * difference.starts / target)
    return Cost(starts=max(1, max(needed, MIN_STARTS) - difference.starts))


def _target_variance(half: float, *, df: float, tests: int) -> float:
    """Return the variance with which a difference of two halves differs from one half with ERROR_RATE and POWER."""
    return (half / (quantile(1 - ERROR_RATE / 2 / tests, df) + quantile(POWER, df))) ** 2
