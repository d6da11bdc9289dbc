"""Differences, intervals and durations as short texts for people."""

from __future__ import annotations

import math

from servetop.analysis.comparison.measured_difference import MeasuredDifference

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_NOTHING = -0.9995
"""Relative loss that is printed as −100 %, as little as anything can lose."""
_POINTS = "share"
"""Unit of metrics whose absolute differences are points of a percentage."""


def difference_text(value: MeasuredDifference) -> str:
    """Return the difference with its sign and unit: `−3.1 %`, `+2.0 pt`, `+0.05 /req`; `–` if unknown."""
    if value.difference is None:
        return "–"
    return f"{signed(value.difference * _factor(value))} {unit_text(value)}"


def interval_text(value: MeasuredDifference) -> str:
    """Return the interval in the unit of the difference: `[−3.6, −2.6]`; `unknown` if it excludes nothing."""
    if value.difference is None:
        return "–"
    if value.high is None and (value.low is None or (value.scale == "relative" and value.low <= _NOTHING)):
        return "unknown"
    low = -math.inf if value.low is None else value.low * _factor(value)
    high = math.inf if value.high is None else value.high * _factor(value)
    return f"[{signed(low)}, {signed(high)}]"


def margin_text(value: MeasuredDifference) -> str:
    """Return the smallest difference looked for: `2 %`, `0.02 /req`."""
    return f"{value.margin * _factor(value):.2g} {unit_text(value)}"


def unit_text(value: MeasuredDifference) -> str:
    """Return the unit of the difference; `pt` are points of a percentage."""
    if value.scale == "relative":
        return "%"
    return "pt" if value.unit == _POINTS else value.unit


def signed(value: float) -> str:
    """Return a number with its sign and two or three digits: `+0.42`, `−3.1`, `+12`, `−∞`; `0` without a sign."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    size = abs(value)
    digits = f"{size:.2f}" if size < 0.995 else f"{size:.1f}" if size < 9.95 else _whole(size)
    if digits == "0.00":
        return "0"
    return f"{'+' if value > 0 else '−'}{digits}"


def _whole(size: float) -> str:
    """Return a large number in at most 5 characters, as intervals may be of any width."""
    for scale, suffix in ((1, ""), (1e3, "k"), (1e6, "M")):
        if size < 9_999.5 * scale:
            return f"{size / scale:,.0f}{suffix}"
    return f"{size:.0e}".replace("+", "")


def duration_text(seconds: float) -> str:
    """Return a duration, rounded up to its shown digits: `90 s`, `12 min`, `2 h 10 min`, `3 days`."""
    if seconds <= 2 * _MINUTE:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / _MINUTE)
    if minutes < 100:
        return f"{minutes} min"
    if seconds < 2 * _DAY:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{math.ceil(seconds / _DAY):,} days"


def _factor(value: MeasuredDifference) -> float:
    return 100.0 if value.scale == "relative" or value.unit == _POINTS else 1.0
