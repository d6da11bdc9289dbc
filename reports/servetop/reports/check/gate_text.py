"""Writes gates for people: differences in the unit of the limit, and one sentence for each gate."""

from __future__ import annotations

import math

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.comparison.compared_metrics import Scale
from servetop.analysis.comparison.difference_texts import difference_text
from servetop.analysis.comparison.difference_texts import interval_text as interval_of
from servetop.analysis.comparison.undecided_texts import text_of_cost
from servetop.core.text import formats
from servetop.reports.check.regression_gate import RegressionGate

LIMIT_COLUMNS = ("baseline", "run", "change", "95 % interval", "limit")
"""Headings of the columns of `figures`."""


def change_text(gate: RegressionGate) -> str:
    """Return the difference, such as `−1.4 %` or `+12 ms`; `–` if unknown."""
    return "–" if gate.shown is None else difference_text(gate.shown)


def interval_text(gate: RegressionGate) -> str:
    """Return the interval in the unit of the difference, such as `[−2.1, +0.3]`; `–` if unknown."""
    return "–" if gate.shown is None else interval_of(gate.shown)


def figures(gate: RegressionGate) -> tuple[str, ...]:
    """Return what a table shows of a limit below `LIMIT_COLUMNS`."""
    levels = (None, None) if gate.shown is None else (gate.shown.a, gate.shown.b)
    return (*map(formats.in_full, levels), change_text(gate), interval_text(gate), gate.limit.text)


def _kept_limit(gate: RegressionGate) -> str:
    """Return the smallest limit that would be kept, rounded up."""
    relative = gate.difference is None or gate.difference.scale is Scale.RELATIVE
    level = 1.0 if gate.difference is None else abs(gate.difference.a)
    if gate.limit.relative and (relative or level):
        amount, unit = gate.largest_loss * 100 / (1.0 if relative else level), "%"
    else:
        amount, unit = gate.largest_loss * (level if relative else 1.0), gate.limit.metric.unit
    step = 1.0 if amount >= 100 else 0.1 if amount >= 1 else 0.001
    return f"{math.ceil(amount / step) * step:,.6g} {unit}"


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
