"""Why a metric is undecided and what would tell, in the words of the terminal, Markdown, the dashboard and gates."""

from __future__ import annotations

import math
from collections.abc import Iterable

from servetop.analysis.comparison.difference_texts import duration_text
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.undecided import BLOCKED, UndecidedReason
from servetop.analysis.comparison.verdicts import Cost
from servetop.core.text.counted import counted

_SETTLING = 1.5
"""Length of a stage in windows: it has to settle before the window begins."""
_ROUND = 10.0
_PHRASES = {
    UndecidedReason.MANY_METRICS: "one of many metrics",
    UndecidedReason.NEAR_MARGIN: "near the margin",
    UndecidedReason.TOO_FEW_VALUES: "too few values",
}


def cost_text(*, starts: int | None, seconds: float | None, more_than: str = "") -> str:
    """Return what is still to be measured: `4 more starts`, `12 min more`, `more than 4 h`; empty if unknown."""
    if more_than:
        return f"more than {more_than}"
    if starts:
        return f"{starts:,} more start{'s' if starts > 1 else ''}"
    return f"{duration_text(seconds)} more" if seconds else ""


def text_of_cost(cost: Cost) -> str:
    """Return the same for a cost."""
    return cost_text(starts=cost.starts, seconds=cost.seconds, more_than=cost.more_than)


def undecided_text(value: MeasuredDifference, *, brief: bool = False) -> str:
    """Return why a metric is undecided and what would tell, with `brief` the more important of both."""
    reason = value.reason
    if reason in BLOCKED or reason is None:
        return str(reason or "")
    if value.difference is None:
        return value.note or str(reason)
    cost = cost_text(starts=value.more_starts, seconds=value.more_seconds, more_than=value.more_than or "")
    if reason == UndecidedReason.WIDE_INTERVAL:
        return cost or str(reason)
    if brief:
        return reason
    return ", ".join(filter(None, (_PHRASES[UndecidedReason(reason)], cost)))


def measured_text(seconds: Iterable[float], requests: Iterable[int]) -> str:
    """Return how much of a stage was measured, of the configuration with less: `9.91 s and 174 requests`."""
    return f"{min(seconds):.3g} s and {counted(min(requests), 'request')}"


def stage_length_text(needed: float) -> str:
    """Return how long a stage has to be for a window of this length, settling included: `60 s`."""
    return duration_text(math.ceil(needed * _SETTLING / _ROUND) * _ROUND)
