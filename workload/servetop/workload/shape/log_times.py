"""Times of logs: ISO 8601, or a number of seconds, milliseconds, microseconds or nanoseconds."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from servetop.workload.shape.logged_request import UnreadableLine

_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
"""Upper bound of a time as a number, and how many of its units are a second: the bound is the year 5138 in each."""
_NUMBER = re.compile(r"\d+(\.\d+)?([eE]\+?\d+)?")
_ZONE = re.compile(r" (?:UTC|GMT|([+-]\d[\d:]+))$")
_WHOLE_SECOND = re.compile(r"T?\d\d:\d\d:\d\d(Z|[+-]\d\d:?\d\d)?$")


def log_time(value: object) -> float:
    """Return a time in seconds since 1970, or since the start of a clock that began at 0; UnreadableLine for others.

    The size of a number decides its unit. A date without a time zone is UTC.
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return _date(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnreadableLine
    try:
        return _in_seconds(float(value))
    except OverflowError:
        raise UnreadableLine from None


def _in_seconds(number: float) -> float:
    """Return a time since 1970 in seconds, whatever its unit."""
    per_second = next((unit for bound, unit in _UNITS if 0 <= number < bound), math.nan)
    if math.isnan(per_second):
        raise UnreadableLine
    return number / per_second


def resolution_of(value: object) -> float:
    """Return the resolution of a time in seconds: 1 for one without a fraction of a second, 0 for all others."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return 1.0 if _WHOLE_SECOND.search(value.strip()) else 0.0
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return 1.0 if 1e8 < number < _UNITS[0][0] and number == int(number) else 0.0


def _date(text: str) -> float:
    try:
        at = datetime.fromisoformat(_ZONE.sub(r"\1", text))
        return at.replace(tzinfo=at.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        raise UnreadableLine from None
