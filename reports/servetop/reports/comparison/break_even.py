"""The price per hour at which a configuration costs as much per token as the first one."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.comparison.compared_metrics import COST_METRIC
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import BreakEvenPrice, ComparedStage


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
    """The price at which the costs would be equal, from their relative difference; None if there is none."""
    return per_hour / (1 + difference) if difference is not None and difference > -1 else None
