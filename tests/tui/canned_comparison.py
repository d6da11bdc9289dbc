"""Canned comparisons of two runs."""

from __future__ import annotations

from dataclasses import replace

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.compared_metrics import Scale, metric_named
from servetop.analysis.comparison.comparison import Comparison
from servetop.analysis.comparison.difference import Basis, Difference
from servetop.analysis.comparison.measured_difference import MeasuredDifference, measured_difference
from servetop.analysis.comparison.undecided import UndecidedReason
from servetop.analysis.comparison.verdicts import Verdict
from tests.analysis.comparison_values import stage

LOSS = Difference(
    a=1000.0, b=900.0, value=-0.1, low_error=0.01, high_error=0.01, df=20.0, basis=Basis.BLOCKS, scale=Scale.RELATIVE
)


TAIL = replace(LOSS, a=20.0, b=2300.0, value=114.0)
CAUSE = (
    "cache: the prefix cache had 58% of the first 14,000 prompt tokens in the run and 31% in the baseline: "
    "the cache of the run held prompts of this workload before the run"
)
USAGE = replace(LOSS, a=0.5, b=0.52, value=0.02, scale=Scale.ABSOLUTE)


def compared(key: str, difference: Difference | None, verdict: Verdict, **more: object) -> MeasuredDifference:
    metric = metric_named(key)
    assert metric is not None
    found = measured_difference(metric, difference, margin=0.02, verdict=verdict)
    return replace(found, **more)  # type: ignore[arg-type]


def comparison(*metrics: MeasuredDifference) -> Comparison:
    found = stage(
        *metrics, seconds_a=15.0, seconds_b=14.0, requests_a=120, requests_b=1118, unsteady="the load lasted 15 s"
    )
    return Comparison(stages=(found,), only_a=(StageLoad(request_rate=4.0),), only_b=(StageLoad(request_rate=9.0),))


def varied() -> Comparison:
    """One stage with every verdict, and another cause than the change."""
    found = comparison(
        compared("output_throughput", LOSS, Verdict.WORSE),
        compared("mean_ttft_ms", replace(LOSS, a=52.0, b=47.0, value=-0.096), Verdict.BETTER),
        compared("p99_ttft_ms", TAIL, Verdict.CANNOT_TELL, more_starts=3, reason=UndecidedReason.WIDE_INTERVAL),
        compared("mean_kv_usage", USAGE, Verdict.NO_DIFFERENCE),
        compared(
            "request_goodput",
            None,
            Verdict.CANNOT_TELL,
            note="not measured in the run",
            reason=UndecidedReason.NOT_MEASURED,
        ),
    )
    return replace(found, causes=[CAUSE], headline="The run is worse: output tokens −10 %")
