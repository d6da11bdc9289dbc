"""Limits of axes: round numbers that stay the same while the data moves."""

from __future__ import annotations

import math

import numpy as np

from servetop.core.arrays import FloatArray

_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_SHORTEST = 1e-5
"""Seconds at the lower end of a logarithmic axis, at least."""
_NEGLIGIBLE = 1e-9
_SHRINK_BELOW = 0.45
"""A limit stays until the data fill less than this share of it."""


def round_limit(peak: float) -> float:
    """Return the smallest round number at or above `peak`; 1 for negligible (10⁻⁹), negative or unknown peaks."""
    if not peak > _NEGLIGIBLE or math.isinf(peak):
        return 1.0
    magnitude = 10.0 ** math.floor(math.log10(peak))
    return next(step for step in (*_STEPS, 20.0) if step * magnitude >= peak * (1 - 1e-9)) * magnitude


def steady_limit(previous: float, peak: float) -> float:
    """Return the limit of this frame, given the last one (0 for none): it grows at once and shrinks only by a lot."""
    if previous > 0 and previous * _SHRINK_BELOW <= peak <= previous:
        return previous
    if previous > 0 and not peak > 0:
        return previous
    return round_limit(peak)


def peak_of(*columns: FloatArray) -> float:
    """Return the largest finite value in any of the columns; 0 if there is none."""
    finite = [column[np.isfinite(column)] for column in columns]
    return max((float(each.max()) for each in finite if each.size), default=0.0)


def log_limits(low: float, high: float) -> tuple[float, float]:
    """1 or 3 times a power of ten at or beyond both ends, so that the axis keeps still; at least 10 µs.

    Tokens that arrive together are 0 apart: on a logarithmic axis they would push all others to its end.
    """
    low, high = max(low, _SHORTEST), max(high, _SHORTEST)
    below = [factor * 10.0**power for power in range(-8, 7) for factor in (1, 3)]
    bottom = max((each for each in below if each <= low), default=below[0])
    return bottom, min((each for each in below if each >= high and each > bottom), default=below[-1])


def log_ticks(low: float, high: float, *, most: int) -> list[float]:
    """At most `most` (2 or more) round values of a logarithmic axis, from one at or below `low` to one above `high`.

    They are 1, 2 and 5 times powers of ten if there is room, else 1 and 3 times, else powers of ten.
    """
    low, high = max(low, _SHORTEST), max(high, _SHORTEST)
    for steps, stride in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 4)):
        every = [step * 10.0**power for power in range(-8, 8, stride) for step in steps]
        first = max(number for number, each in enumerate(every) if each <= low * (1 + 1e-9))
        last = next(number for number, each in enumerate(every) if each > high * (1 - 1e-9) and number > first)
        if last - first < most:
            break
    return every[first : last + 1]
