"""Differences, intervals and margins of a series of pairs, as short texts."""

from __future__ import annotations

import math

from servetop.analysis.comparison.compared_metrics import Scale
from servetop.analysis.comparison.difference_texts import signed
from servetop.analysis.comparison.paired_runs import PairedMetric

_LOWEST, _HIGHEST = -0.9, 100.0
"""Relative differences beyond which an interval that contains 0 is not shown."""


def difference_text(metric: PairedMetric) -> str:
    """The mean difference with its unit: `−2.1 %`, `+0.05 /req`."""
    return f"{signed(metric.difference.value * _factor(metric))} {_unit(metric)}"


def interval_text(metric: PairedMetric) -> str:
    """The interval in the unit of the difference: `[−3.4, −0.8]`; empty as long as it excludes next to nothing."""
    low, high = metric.interval
    relative = metric.difference.scale is Scale.RELATIVE
    if math.isinf(high) or (relative and low < 0 < high and (low < _LOWEST or high > _HIGHEST)):
        return ""
    return f"[{signed(low * _factor(metric))}, {signed(high * _factor(metric))}]"


def margin_text(metric: PairedMetric) -> str:
    """The smallest difference looked for: `2 %`."""
    return f"{metric.margin * _factor(metric):.2g} {_unit(metric)}"


def _factor(metric: PairedMetric) -> float:
    return 100.0 if metric.difference.scale is Scale.RELATIVE or metric.metric.unit == "share" else 1.0


def _unit(metric: PairedMetric) -> str:
    if metric.difference.scale is Scale.RELATIVE:
        return "%"
    return "points" if metric.metric.unit == "share" else metric.metric.unit
