"""Builds the report of a comparison from the recordings of its configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from servetop.analysis.comparison.compared_metrics import COST_METRIC
from servetop.analysis.comparison.comparison import Comparison, ComparisonOptions, compare
from servetop.analysis.comparison.difference import ENOUGH_STARTS
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import (
    ArmComparison,
    BreakEvenPrice,
    ComparedStage,
)
from servetop.analysis.comparison.start_spread import SAME
from servetop.analysis.manifest.manifest_diff import manifest_differences
from servetop.reports.comparison.headline import headline, overall_verdict
from servetop.reports.comparison.measured_arm import MeasuredArm
from servetop.reports.comparison.other_causes import other_causes
from servetop.reports.comparison.preconditions import check_measured, check_stages, warnings_of
from servetop.reports.comparison.run_pairs_advice import run_pairs_advice


def arm_comparison(a: MeasuredArm, b: MeasuredArm, options: ComparisonOptions) -> ArmComparison:
    """Compare two configurations; UsageError if nothing was measured, or no load is in common.

    Different workloads are compared with a warning: `check_same_workload` refuses them before they are loaded.
    """
    check_measured(a)
    check_measured(b)
    options = replace(options, names=(a.letter, b.letter))
    comparison = compare([run.arm for run in a.runs], [run.arm for run in b.runs], options)
    stages = report_stages(comparison)
    check_stages(stages, a, b)
    differences = manifest_differences(a.first.header, b.first.header)
    few = min(len(a.runs), len(b.runs)) < ENOUGH_STARTS
    advice = run_pairs_advice(a.first, b.first, stages, differences)
    return ArmComparison(
        b=b.summary(),
        verdict=str(overall_verdict(stages)),
        headline=headline(b.letter, stages, advice),
        run_pairs=advice,
        warnings=warnings_of(a, b, differences),
        differences=tuple(each for each in differences if not each.unknown),
        unknown=tuple(each.key for each in differences if each.unknown),
        other_causes=other_causes(a, b),
        start_spread=comparison.start_spread if few else SAME,
        stages=stages,
        break_even=break_even_prices(stages, b.price_per_hour),
        only_a=tuple(load.label for load in comparison.only_a),
        only_b=tuple(load.label for load in comparison.only_b),
    )


def report_stages(comparison: Comparison) -> tuple[ComparedStage, ...]:
    """Return the stages of a comparison; one with too few requests on a side has no metrics."""
    return tuple(
        stage if min(stage.requests) > 0 else replace(stage, metrics=(), not_measured=()) for stage in comparison.stages
    )


def break_even_prices(stages: Sequence[ComparedStage], per_hour: float | None) -> tuple[BreakEvenPrice, ...]:
    """Return the break-even price of each stage, `per_hour` being the present one; none if a price is unknown.

    Costs per token are in proportion to the price, so the limits are those of the relative difference of the costs.
    """
    values = [(stage.label, stage.metric(COST_METRIC.key)) for stage in stages]
    if per_hour is None:
        return ()
    return tuple(_price(label, value, per_hour) for label, value in values if value and value.difference is not None)


def _price(label: str, value: MeasuredDifference, per_hour: float) -> BreakEvenPrice:
    price, low, high = (_at(each, per_hour) for each in (value.difference, value.high, value.low))
    return BreakEvenPrice(label=label, per_hour=price or 0.0, low=low or 0.0, high=high)


def _at(difference: float | None, per_hour: float) -> float | None:
    """Return the price at which the costs would be equal, from their relative difference; None if there is none."""
    return per_hour / (1 + difference) if difference is not None and difference > -1 else None
