"""Why a comparison cannot tell whether a metric differs."""

from __future__ import annotations

import math
from enum import StrEnum

from servetop.analysis.comparison.difference import Basis, Difference
from servetop.analysis.comparison.verdicts import ERROR_RATE, alarm_probability


class UndecidedReason(StrEnum):
    """Why the verdict is *cannot tell*."""

    NOT_MEASURED = "not measured"
    TOO_SHORT = "too short"
    """The stage is shorter than the variation within it takes to be judged."""
    NOT_STEADY = "not steady"
    """The figures depend on when the measurement ends, so more seconds would not tell."""
    TOO_FEW_VALUES = "too few values"
    """The error of the difference is unknown."""
    MANY_METRICS = "many metrics"
    """Alone, the metric would be better or worse; among many, a difference of this size is expected by chance."""
    NEAR_MARGIN = "near the margin"
    """The interval excludes 0, but not half the margin."""
    WIDE_INTERVAL = "wide interval"
    """The interval contains 0, and differences beyond the margin."""


BLOCKED = (UndecidedReason.TOO_SHORT, UndecidedReason.NOT_STEADY)
"""Reasons that lie in the stage, so that an estimate of what would tell means nothing."""


def undecided_reason(found: Difference, *, margin: float, too_short: bool, unsteady: bool) -> UndecidedReason:
    """Return the first reason that applies to a difference without a verdict.

    The length and the steadiness of a stage bear on the error from the variation within runs only.
    """
    within_runs = found.basis in (Basis.BLOCKS, Basis.PAIRED_BLOCKS)
    low, high = found.interval
    reasons = (
        (UndecidedReason.TOO_SHORT, within_runs and too_short),
        (UndecidedReason.NOT_STEADY, within_runs and unsteady),
        (UndecidedReason.TOO_FEW_VALUES, math.isinf(found.error)),
        (UndecidedReason.MANY_METRICS, alarm_probability(found, margin) < ERROR_RATE),
        (UndecidedReason.NEAR_MARGIN, low > 0 or high < 0),
    )
    return next((reason for reason, applies in reasons if applies), UndecidedReason.WIDE_INTERVAL)
