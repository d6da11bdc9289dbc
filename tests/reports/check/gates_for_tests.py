"""Hand-made comparisons: one stage, one metric, a known difference and error."""

from __future__ import annotations

import math
from dataclasses import replace

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.compared_metrics import METRICS, Scale, metric_named
from servetop.analysis.comparison.comparison import Comparison
from servetop.analysis.comparison.difference import Basis, Difference
from servetop.analysis.comparison.measured_difference import MeasuredDifference, measured_difference
from servetop.analysis.comparison.report_types import ComparedStage
from tests.analysis import comparison_values

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


def measured(key: str, difference: Difference | None, *, note: str = "") -> MeasuredDifference:
    """A metric that is not judged yet."""
    return replace(measured_difference(metric_named(key) or METRICS[0], difference, margin=0.0), note=note)


def stage(
    *metrics: MeasuredDifference,
    load: StageLoad = LOAD,
    seconds: tuple[float, float] = (60.0, 60.0),
    requests: tuple[int, int] = (480, 480),
    unsteady: str = "",
) -> ComparedStage:
    """A stage of one start of each arm."""
    return comparison_values.stage(
        *metrics,
        load=load,
        label=load.label,
        request_rate=load.request_rate,
        ramp_from=load.ramp_from,
        seconds_a=seconds[0],
        seconds_b=seconds[1],
        requests_a=requests[0],
        requests_b=requests[1],
        unsteady=unsteady,
    )


def comparison(**differences: Difference | None) -> Comparison:
    """A comparison of one stage with these metrics."""
    return Comparison(stages=(stage(*(measured(key, found) for key, found in differences.items())),))
