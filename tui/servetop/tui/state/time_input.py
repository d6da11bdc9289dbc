"""Times of a run: parsing those that users type, and finding those of events."""

from __future__ import annotations

import math
from collections.abc import Iterable

from servetop.analysis.diagnosis.episode import Episode
from servetop.core.errors import UsageError
from servetop.core.events import Command, Note, StageChange

_NEAR = 0.125
"""Seconds, half a tick: events this close to the playhead are where it already is."""


def parse_time(text: str, *, edge: float) -> float:
    """Return seconds from `90`, `1:30`, `0:01:30`, `2.5` or `50%` of the run; UsageError, one line, for anything else.

    Times beyond `edge`, the end of the run, mean `edge`.
    """
    entered = text.strip().replace(" ", "")
    try:
        if entered.endswith("%"):
            at = _plain(entered[:-1]) / 100 * edge
        else:
            *above, last = entered.split(":")
            at = _plain(last)
            if len(above) > 2 or (above and at >= 60) or any(int(each) >= 60 for each in above[1:]):
                raise ValueError
            for power, each in enumerate(reversed(above), start=1):
                at += int(_digits(each)) * 60**power
    except ValueError:
        shown = text.strip()[:20] or "nothing"
        raise UsageError(f"invalid time {shown!r}: use 90, 1:30, 0:01:30 or 50%") from None
    return min(at, edge)


def _digits(text: str) -> str:
    if not text.isascii() or not text.isdigit():
        raise ValueError
    return text


def _plain(text: str) -> float:
    """Parses digits with at most one decimal point: no sign, no exponent."""
    whole, _, part = text.partition(".")
    _digits(whole + part)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def event_times(
    stages: Iterable[StageChange], notes: Iterable[Note], commands: Iterable[Command], episodes: Iterable[Episode] = ()
) -> tuple[float, ...]:
    """Times of stage starts, notes, marks and commands, and those from which episodes were known; ascending."""
    starts = {stage.at for stage in stages if stage.request_rate is not None}
    starts.update(episode.detected_at for episode in episodes)
    return tuple(sorted(starts.union(each.at for group in (notes, commands) for each in group)))


def next_event_time(times: Iterable[float], at: float, *, direction: int) -> float | None:
    """Return the nearest event before (-1) or after (1) `at`, more than half a tick away; None if there is none."""
    if direction > 0:
        return min((each for each in times if each > at + _NEAR), default=None)
    return max((each for each in times if each < at - _NEAR), default=None)
