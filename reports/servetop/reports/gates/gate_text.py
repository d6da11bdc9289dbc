"""Writes gates for people: differences in the unit of the limit, and one sentence for each gate."""

from __future__ import annotations

import math

from servetop.analysis.comparison.compared_metrics import Scale
from servetop.analysis.comparison.undecided_texts import text_of_cost
from servetop.analysis.honesty.check_outcome import CheckOutcome
from servetop.reports.gates.regression_gate import RegressionGate

_UNKNOWN = "?"


def change_text(gate: RegressionGate) -> str:
    """Return the difference, such as `−1.4 %` or `+12 ms`."""
    return "–" if gate.difference is None else in_unit_of_limit(gate, gate.difference.value)


def interval_text(gate: RegressionGate) -> str:
    """Return the interval, such as `−2.1 to +0.3 %`; its ends may be unknown."""
    if gate.difference is None:
        return "–"
    low, high = (in_unit_of_limit(gate, value, unit=False) for value in gate.difference.interval)
    return "unknown" if low == high == _UNKNOWN else f"{low} to {in_unit_of_limit(gate, gate.difference.interval[1])}"


def in_unit_of_limit(gate: RegressionGate, value: float, *, unit: bool = True) -> str:
    """Return a value on the scale of the difference as a percentage if the limit is one, else in its unit."""
    difference = gate.difference
    if difference is None or not math.isfinite(value) or (difference.scale is Scale.RELATIVE and value <= -1):
        return _UNKNOWN
    amount, name = _amount(gate, value)
    return signed(amount) + (f" {name}" if unit else "")


def _amount(gate: RegressionGate, value: float) -> tuple[float, str]:
    """The value with its unit: that of the limit, or of the metric where the baseline is 0."""
    relative = gate.difference is None or gate.difference.scale is Scale.RELATIVE
    level = 1.0 if gate.difference is None else abs(gate.difference.a)
    if gate.limit.relative and (relative or level):
        return value * 100 / (1.0 if relative else level), "%"
    return value * (level if relative else 1.0), gate.limit.metric.unit


def _kept_limit(gate: RegressionGate) -> str:
    """The smallest limit that would be kept, rounded up."""
    amount, unit = _amount(gate, gate.largest_loss)
    step = 1.0 if amount >= 100 else 0.1 if amount >= 1 else 0.001
    return f"{math.ceil(amount / step) * step:,.6g} {unit}"


def signed(value: float) -> str:
    """Return a number with its sign and three digits, at least one of them after the point below 100."""
    sign = "±" if abs(value) < 5e-3 else "+" if value > 0 else "−"
    size = abs(value)
    digits = 0 if size >= 99.95 else 1 if size >= 1 else 2
    return f"{sign}{size:,.{digits}f}"


def sentence(gate: RegressionGate) -> str:
    """Return the difference with its interval and, if it cannot be decided, why and what would tell."""
    if gate.difference is None:
        return gate.note
    text = f"{change_text(gate)}, 95 % interval {interval_text(gate)}"
    if gate.outcome is not CheckOutcome.CANNOT_TELL:
        return f"{text}, limit {gate.limit.text}"
    advice = [gate.note] if gate.note else []
    if gate.needs is not None:
        aim = "bound it" if gate.difference.shortage > 1 else "distinguish half of the limit from the limit"
        beyond = " be needed to" if gate.needs.more_than else ""
        pairs = ": use run-pairs" if gate.needs.more_than else ""
        advice.append(f"{text_of_cost(gate.needs)} of each would{beyond} {aim}{pairs}")
    if math.isfinite(gate.largest_loss) and gate.largest_loss > 0:
        advice.append(f"a limit of {_kept_limit(gate)} would be kept")
    return f"{text}, limit {gate.limit.text}: {'; '.join(advice)}"
