"""One measured difference, as every report, screen and program gets it, whatever it was measured by."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from servetop.analysis.comparison.compared_metrics import ComparedMetric, Family, Scale
from servetop.analysis.comparison.comparison import MetricComparison
from servetop.analysis.comparison.difference import Basis, Difference
from servetop.analysis.comparison.paired_runs import PairedMetric
from servetop.analysis.comparison.undecided import UndecidedReason
from servetop.analysis.comparison.verdicts import Cost, Verdict

_LOWEST, _HIGHEST = -0.9, 100.0
"""Relative ends of an interval around 0 beyond which it excludes next to nothing."""
MIN_PAIRS = 2
"""Pairs from which a series has an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredDifference:
    """The difference of one metric between A and B; unknown values and infinite limits are None.

    A percentile beyond the sample is unknown.
    """

    key: str
    """The key in the summary's JSON, such as `p99_ttft_ms`."""
    title: str
    unit: str
    family: Family
    """Metrics whose verdicts are corrected together."""
    higher_is_better: bool
    a: float | None
    b: float | None
    difference: float | None
    """B - A, as a fraction of A or in the unit of the metric."""
    scale: Scale
    """The scale of difference, low, high and margin."""
    low: float | None
    """Lower limit of the interval that contains the true difference with 95 %."""
    high: float | None
    margin: float
    """Smallest difference looked for."""
    verdict: Verdict
    probability: float | None
    """Of such a difference if the true one is at most half the margin, corrected for the family; None of pairs."""
    basis: Basis | None
    """Where the error comes from."""
    more_starts: int | None
    """Further starts of each configuration that would tell; None if not known or not needed."""
    more_seconds: float | None
    """Further seconds of this stage in each run that would tell."""
    more_pairs: int | None = None
    """Further pairs of runs that would tell, for a series of pairs."""
    more_than: str | None
    """`4 h` or `100 starts` if an answer would cost more than that of each; then the numbers are None."""
    reason: UndecidedReason | None
    """The reason of `cannot tell`; None for other verdicts."""
    note: str
    """Why there is no difference, or no cost of telling; empty otherwise."""

    def on_scale(self, scale: Scale) -> MeasuredDifference:
        """Return the same on another scale; as it is if A is 0 or unknown."""
        if scale is self.scale or not self.a:
            return self
        factor = abs(self.a) if scale is Scale.ABSOLUTE else 1 / abs(self.a)
        low, high, found = (None if each is None else each * factor for each in (self.low, self.high, self.difference))
        return replace(self, scale=scale, difference=found, low=low, high=high, margin=self.margin * factor)


def measured_difference(each: MetricComparison, *, names: tuple[str, str] = ("A", "B")) -> MeasuredDifference:
    """Return one compared metric; `names` are those of A and B in its note."""
    base = _base(each.metric, each.difference, margin=each.margin, verdict=each.verdict)
    missing = "" if each.missing is None else f"not measured in {names['AB'.index(each.missing)]}"
    costed = replace(base, probability=each.probability, reason=each.reason, note=missing or each.note)
    return costed if each.needs is None else with_cost(costed, each.needs)


def with_cost(measured: MeasuredDifference, needs: Cost) -> MeasuredDifference:
    """Return the same with what has to be measured for an answer."""
    known = not needs.more_than
    return replace(
        measured,
        more_starts=needs.starts or None if known else None,
        more_seconds=needs.seconds if known and not needs.starts else None,
        more_than=needs.more_than or None,
    )


def paired_difference(each: PairedMetric) -> MeasuredDifference:
    """Return one metric of a series of pairs; an interval that excludes next to nothing has no limits."""
    low, high = each.interval
    wide = each.difference.scale is Scale.RELATIVE and low < 0 < high and (low < _LOWEST or high > _HIGHEST)
    unknown = wide or len(each.differences) < MIN_PAIRS
    base = _base(each.metric, each.difference, margin=each.margin, verdict=each.verdict)
    return replace(
        base,
        low=None if unknown else _finite(low),
        high=None if unknown else _finite(high),
        more_pairs=None if each.needed is None else each.needed - len(each.differences),
        reason=UndecidedReason.WIDE_INTERVAL if each.verdict is Verdict.CANNOT_TELL else None,
    )


def _base(metric: ComparedMetric, found: Difference | None, *, margin: float, verdict: Verdict) -> MeasuredDifference:
    low, high = (None, None) if found is None else found.interval
    return MeasuredDifference(
        key=metric.key,
        title=metric.title,
        unit=metric.unit,
        family=metric.family,
        higher_is_better=metric.higher_is_better,
        a=None if found is None else _finite(found.a),
        b=None if found is None else _finite(found.b),
        difference=None if found is None else _finite(found.value),
        scale=metric.scale if found is None else found.scale,
        low=_finite(low),
        high=_finite(high),
        margin=margin,
        verdict=verdict,
        probability=None,
        basis=None if found is None else found.basis,
        more_starts=None,
        more_seconds=None,
        more_than=None,
        reason=None,
        note="",
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def named(text: str, *, a: str, b: str) -> str:
    """Return a text on A and B with other names for them."""
    return re.sub(r"\b[AB]\b", lambda found: a if found[0] == "A" else b, text)
