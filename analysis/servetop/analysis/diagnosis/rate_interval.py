"""An interval around an estimated rate: the estimate times two factors, within what was measured."""

from __future__ import annotations

import math
from typing import TypeAlias

RateInterval: TypeAlias = tuple[float, float]
"""Both ends, requests/s."""
Factors: TypeAlias = tuple[float, float]
"""What an estimate is multiplied with to get the ends; around 1."""

_WIDER = 2.576 / 1.645
"""Half-width of a 99 % interval of a normal distribution / that of a 90 % interval."""


def scaled(rate: float | None, factors: Factors | None) -> RateInterval | None:
    """Return the interval of an estimate, requests/s; None without one, or without factors."""
    if rate is None or factors is None or not 0 < rate < math.inf:
        return None
    return rate * factors[0], rate * factors[1]


def nearly_certain(factors: Factors) -> Factors:
    """Return the factors for 99 % instead of 90 %, with errors that are normal in the logarithm of the rate."""
    low, high = (math.exp(_WIDER * math.log(each)) for each in factors)
    return low, high


def within(
    interval: RateInterval | None, rate: float | None, kept: float | None, missed: float | None
) -> RateInterval | None:
    """Return an interval that excludes rates below one that was kept, and above one that was missed.

    Neither counts on the wrong side of the estimate `rate`, which stays in the interval. None without an interval.
    """
    if interval is None or rate is None:
        return None
    low, high = interval
    if kept is not None and kept <= rate:
        low = max(low, kept)
    if missed is not None and missed >= rate:
        high = min(high, missed)
    return low, high
