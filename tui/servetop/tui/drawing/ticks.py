"""Tick labels of axes: values in steps of 1, 2 or 5 times a power of ten, and times of the run at round seconds."""

from __future__ import annotations

import math
from collections.abc import Callable

from servetop.core.text import formats

MOST_TICKS = 5
"""Ticks of a value axis, at most; at least two from 3 rows on."""
TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400)
"""Seconds between two labels of a time axis."""
_GAP = 3
"""Cells between two labels of a time axis, at least, with the mark before the second one."""
_NEGLIGIBLE = 1e-9


def value_ticks(limit: float, *, rows: int, smallest_step: float = 0.0) -> dict[int, float]:
    """Return the value to label in each labelled row, by row from the top, on an axis from 0 to `limit`."""
    if rows == 1:
        return {0: limit}
    fit = min(MOST_TICKS, (rows + 1) // 2)
    step = max(_value_step(limit, most=fit if fit > 2 else MOST_TICKS), smallest_step)
    values = [number * step for number in range(math.floor(limit / step + _NEGLIGIBLE) + 1)]
    shown = values if len(values) <= fit else [values[0], values[-1]]
    dots = rows * 4
    return {rows - 1 - round(value / limit * (dots - 1)) // 4: value for value in shown}


def _value_step(limit: float, *, most: int) -> float:
    """Return the smallest round step with at most `most` ticks from 0 to `limit`."""
    rough = limit / (most - 1)
    magnitude = 10.0 ** math.floor(math.log10(rough))
    return next(factor for factor in (1, 2, 5, 10) if factor * magnitude >= rough * (1 - _NEGLIGIBLE)) * magnitude


def time_ticks(window: tuple[float, float], *, width: int, from_now: bool) -> dict[int, str]:
    """Labels by column: times of the run at round seconds, or distances from the right edge if `from_now`."""
    start, end = window
    span = end - start
    room = len(formats.clock(end)) + from_now + _GAP
    days = math.ceil(span / width * room / TIME_STEPS[-1]) * TIME_STEPS[-1]
    step = next((each for each in TIME_STEPS if each / span * width >= room), days)
    if from_now:
        times = [end - number * step for number in range(int(span / step + _NEGLIGIBLE), 0, -1)]
        labelled: Callable[[float], str] = lambda at: f"−{formats.clock(end - at)}"  # noqa: E731
    else:
        first = math.ceil(start / step - _NEGLIGIBLE)
        times = [number * step for number in range(first, math.floor(end / step + _NEGLIGIBLE) + 1)]
        labelled = formats.clock
    return {round((at - start) / span * width): labelled(at) for at in times}
