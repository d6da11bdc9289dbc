"""One measured difference, as every report, screen and program gets it, whatever it was measured by."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

from servetop.analysis.comparison.compared_metrics import ComparedMetric, Family, Scale
from servetop.analysis.comparison.difference import Basis, Difference
from servetop.analysis.comparison.undecided import UndecidedReason
from servetop.analysis.comparison.verdicts import Cost, Verdict
from servetop.analysis.field_metadata import INTERNAL

BASELINE_AND_RUN = ("the baseline", "the run")
"""What A and B are called where a run is compared with its baseline."""


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
    found: Difference | None = field(default=None, metadata=INTERNAL)
    """The difference with its errors; None if one side was not measured."""

    def on_scale(self, scale: Scale) -> MeasuredDifference:
        """Return the same on another scale; as it is if A is 0 or unknown."""
        if scale is self.scale or not self.a:
            return self
        factor = abs(self.a) if scale is Scale.ABSOLUTE else 1 / abs(self.a)
        low, high, found = (None if each is None else each * factor for each in (self.low, self.high, self.difference))
        return replace(self, scale=scale, difference=found, low=low, high=high, margin=self.margin * factor)


def measured_difference(
    metric: ComparedMetric, found: Difference | None, *, margin: float, verdict: Verdict = Verdict.CANNOT_TELL
) -> MeasuredDifference:
    """Return the difference of one metric, without what would tell; `margin` is on its scale."""
    low, high = (None, None) if found is None else found.interval
    return MeasuredDifference(
        key=metric.key,
        title=metric.title,
        unit=metric.unit,
        family=metric.family,
        higher_is_better=metric.higher_is_better,
        a=None if found is None else finite(found.a),
        b=None if found is None else finite(found.b),
        difference=None if found is None else finite(found.value),
        scale=metric.scale if found is None else found.scale,
        low=finite(low),
        high=finite(high),
        margin=margin,
        verdict=verdict,
        probability=None,
        basis=None if found is None else found.basis,
        more_starts=None,
        more_seconds=None,
        more_than=None,
        reason=None,
        note="",
        found=found,
    )


def with_cost(measured: MeasuredDifference, needs: Cost) -> MeasuredDifference:
    """Return the same with what has to be measured for an answer."""
    known = not needs.more_than
    return replace(
        measured,
        more_starts=needs.starts or None if known else None,
        more_seconds=needs.seconds if known and not needs.starts else None,
        more_than=needs.more_than or None,
    )


def finite(value: float | None) -> float | None:
    """Return a value; None for one that is unknown or infinite."""
    return value if value is not None and math.isfinite(value) else None


def named(text: str, *, a: str, b: str) -> str:
    """Return a text on A and B with other names for them."""
    return re.sub(r"\b[AB]\b", lambda found: a if found[0] == "A" else b, text)
