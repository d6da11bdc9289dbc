"""How the story writes times, durations, numbers and error messages."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.core.text.shorten import cut_short

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


def objectives_text(goodput: Mapping[str, float]) -> str:
    """Objectives in seconds by metric, such as `TTFT ≤ 500 ms, TPOT ≤ 50 ms`; empty without any."""
    return ", ".join(f"{metric.upper()} ≤ {seconds(limit)}" for metric, limit in goodput.items())
