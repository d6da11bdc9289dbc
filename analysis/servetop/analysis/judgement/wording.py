"""How the story writes times, durations, numbers and error messages."""

from __future__ import annotations

import re
from collections.abc import Mapping

from servetop.core.text.shorten import cut_short

_NUMBER = r"[\d,]+(?:\.\d+)?(?:e-\d+)?"
_INTERVAL = re.compile(rf" \[{_NUMBER}, {_NUMBER}\]")
MAX_REASON = 300
"""Characters of an error message that the story quotes."""


def clock(at: float) -> str:
    """Format a time of the run, such as `1:05` or `1:00:05`."""
    minutes, second = divmod(int(at), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def seconds(value: float) -> str:
    """Format a duration, such as `98 ms`, `3.4 s` or `17 s`."""
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def shortened(reason: str) -> str:
    """An error message with its end replaced by an ellipsis if it is long."""
    return cut_short(reason, MAX_REASON)


def rate_number(rate: float) -> str:
    """Format a rate with three digits, or all of 1,000 and more, such as `0.52` or `1,250`."""
    return f"{rate:,.0f}" if rate >= 999.5 else f"{rate:.3g}"


def interval_text(ends: tuple[float, float] | None) -> str:
    """Both ends of the interval of a rate, behind the rate: ` [4.61, 5.87]`; empty without one."""
    return "" if ends is None else f" [{rate_number(ends[0])}, {rate_number(ends[1])}]"


def without_intervals(text: str) -> str:
    """A text without what `interval_text` added, for where there is no room for it."""
    return _INTERVAL.sub("", text)


def objectives_text(goodput: Mapping[str, float]) -> str:
    """Objectives in seconds by metric, such as `TTFT ≤ 500 ms, TPOT ≤ 50 ms`; empty without any."""
    return ", ".join(f"{metric.upper()} ≤ {seconds(limit)}" for metric, limit in goodput.items())
