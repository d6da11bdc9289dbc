"""The time axis that all charts share: it grows in steps with the load, then scrolls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.events import StageChange

STEPS = (15.0, 30.0, 60.0, 120.0, 300.0)
"""Lengths in seconds of an axis that grows; it ends with the selected length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """An axis of `span` seconds whose left edge stays at `start` until the data reach its right edge."""

    start: float
    span: float

    def window(self, newest: float) -> tuple[float, float]:
        """Left and right edge in seconds of the run, for data that end at `newest`."""
        right = max(newest, self.start + self.span)
        return right - self.span, right


def time_axis_at(at: float, *, selected: float, stages: Sequence[StageChange]) -> TimeAxis:
    """Return the axis at a time of the run, seconds: the load so far, at least 15 s, at most the `selected` length.

    A selected length of 0 is the whole load, from its start; from second 0 until it starts.
    """
    load_at = next((stage.at for stage in stages if stage.request_rate is not None and stage.at <= at), 0.0)
    if not selected:
        return TimeAxis(start=load_at, span=max(at - load_at, STEPS[0]))
    lengths = (*(step for step in STEPS if step < selected), selected)
    return TimeAxis(start=load_at, span=next((each for each in lengths if at - load_at <= each), selected))
