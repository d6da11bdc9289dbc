"""How the story writes durations, intervals, objectives and error messages."""

from __future__ import annotations

import re
from collections.abc import Mapping

from servetop.core.text import formats
from servetop.core.text.shorten import cut_short

_NUMBER = r"[\d,]+(?:\.\d+)?(?:e-\d+)?"
_INTERVAL = re.compile(rf" \[{_NUMBER}, {_NUMBER}\]")
MAX_REASON = 300
"""Characters of an error message that the story quotes."""


def seconds(value: float) -> str:
    """Format a duration, such as `98 ms`, `3.4 s` or `17 s`."""
    return formats.seconds(value, prose=True)


def shortened(reason: str) -> str:
    """Return an error message with its end replaced by an ellipsis if it is long."""
    return cut_short(reason, MAX_REASON)


def interval_text(ends: tuple[float, float] | None) -> str:
    """Both ends of the interval of a rate, behind the rate: ` [4.61, 5.87]`; empty without one."""
    return "" if ends is None else f" [{formats.rate_number(ends[0])}, {formats.rate_number(ends[1])}]"


def without_intervals(text: str) -> str:
    """Return a text without what `interval_text` added, for where there is no room for it."""
    return _INTERVAL.sub("", text)


def objectives_text(goodput: Mapping[str, float]) -> str:
    """Objectives in seconds by metric, such as `TTFT ≤ 500 ms, TPOT ≤ 50 ms`; empty without any."""
    return ", ".join(f"{metric.upper()} ≤ {seconds(limit)}" for metric, limit in goodput.items())
