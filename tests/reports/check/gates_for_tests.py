"""Hand-made comparisons: one stage, one metric, a known difference and error."""

from __future__ import annotations

import math
from typing import Literal

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.compared_metrics import METRICS, Scale, metric_named
from servetop.analysis.comparison.comparison import Comparison, MetricComparison, StageComparison
from servetop.analysis.comparison.difference import Basis, Difference
from servetop.analysis.comparison.verdicts import Verdict

LOAD = StageLoad(request_rate=8.0)


def differing(
    value: float, error: float, *, a: float = 100.0, scale: Scale = Scale.RELATIVE, df: float = math.inf
) -> Difference:
    """A difference of two runs with this standard error."""
    b = a * (1 + value) if scale is Scale.RELATIVE else a + value
    return Difference(
        a=a, b=b, value=value, low_error=error, high_error=error, df=df, basis=Basis.BLOCKS, scale=scale,
        within_variance=error**2,
    )  # fmt: skip


def measured(key: str, difference: Difference | None, *, missing: Literal["A", "B"] | None = None) -> MetricComparison:
    """A metric that is not judged yet."""
    metric = metric_named(key) or METRICS[0]
    return MetricComparison(
        metric=metric, difference=difference, margin=0.0, verdict=Verdict.CANNOT_TELL, missing=missing
    )


def stage(
    *metrics: MetricComparison,
    load: StageLoad = LOAD,
    seconds: tuple[float, float] = (60.0, 60.0),
    requests: tuple[int, int] = (480, 480),
    unsteady: str = "",
) -> StageComparison:
    """A stage of one start of each arm."""
    return StageComparison(
        load=load, seconds=seconds, requests=requests, starts=(1, 1), same_requests=False, unsteady=unsteady,
        metrics=metrics,
    )  # fmt: skip


def comparison(**differences: Difference | None) -> Comparison:
    """A comparison of one stage with these metrics."""
    return Comparison(stages=(stage(*(measured(key, found) for key, found in differences.items())),))
