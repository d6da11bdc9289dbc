"""Unit constants, and parsing of durations and rates that people type.

Inside servetop every duration is in seconds, every size in bytes, every amount of text in tokens.
"""

from __future__ import annotations

import math

from servetop.core.errors import UsageError

MS_PER_S = 1e3
US_PER_S = 1e6
NS_PER_S = 1e9
GIB = 1 << 30

_DURATION_SUFFIXES = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

SWEEP_HINT = "for several use servetop sweep (--example prints a file)"
"""What to do with several values where one is expected."""


def parse_seconds(text: str) -> float:
    """Parse `90`, `90s`, `1.5m`, `500ms`, `2h` or `7d` into seconds; UsageError for anything else, and for ≤ 0."""
    stripped = text.strip()
    digits = stripped.rstrip("abcdefghijklmnopqrstuvwxyz")
    scale = _DURATION_SUFFIXES.get(stripped[len(digits) :] or "s")
    try:
        seconds = float(digits) * scale if scale is not None else math.nan
    except ValueError:
        seconds = math.nan
    if not (0 < seconds < math.inf):
        raise UsageError(f"{text!r} is not a duration: use seconds, or a number with ms, s, m, h or d, as in 30s")
    return seconds


def parse_rate(text: str) -> float:
    """Parse requests per second from `8`, `0.5` or `inf` (as fast as the concurrency allows)."""
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
        if "," in text:
            raise UsageError(f"{text!r} is several request rates: {SWEEP_HINT}") from None
    if not rate > 0:
        raise UsageError(f"{text!r} is not a request rate: use requests per second above 0, or inf")
    if rate != math.inf and rate > MAX_REQUEST_RATE:
        raise UsageError(
            f"{text} requests/s is beyond what one machine can send: stay at or below {MAX_REQUEST_RATE:,.0f}"
        )
    return rate


MAX_REQUEST_RATE = 100_000.0
