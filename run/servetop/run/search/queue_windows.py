"""Whether the queue grows at a load of a search, as an objective of its own: in an open loop no load that the engine
cannot complete is sustained, however long its queue stays within the limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from servetop.run.search.load_windows import LoadWindow, Trend

QUEUE_ALLOWED = 0.5
"""Share of a window's parts that may have a growing queue."""
_PARTS = 6.0
"""Independent parts of a window that was kept for long enough, ..."""
_GROWING = 20.0
"""... and of one whose queue grew from begin to end."""
_LATENCIES = 8.0
"""Request latencies after which a window has shown whether its queue grows."""
_RUNAWAY = 4.0
"""A queue grows without end if requests in flight rise to this many times what smaller loads lead to expect, ..."""
_LEAST_RUNAWAY = 20.0
"""... and to this number at least, ..."""
_RUNAWAY_ERRORS = 3.0
"""... and by this many standard errors of the arrivals and the ends, which are as random as each other."""


def expected_in_flight(windows: Sequence[LoadWindow], load: float) -> float:
    """Return the most requests in flight that smaller loads which had settled lead to expect at a load; at least 2."""
    settled = [each for each in windows if each.load < load and each.trend is Trend.SETTLED and each.in_flight > 0]
    return max([2.0, *(each.in_flight * load / each.load for each in settled)])


def queue_windows(windows: Sequence[LoadWindow], *, longest: float) -> list[LoadWindow]:
    """Return the windows as evidence about the queue.

    A queue that rose for `longest` seconds, or far beyond what smaller loads lead to expect, grows; one that rises
    for a shorter time shows nothing yet.
    """
    return [_queue_window(each, windows[:index], longest) for index, each in enumerate(windows)]


def _queue_window(window: LoadWindow, before: Sequence[LoadWindow], longest: float) -> LoadWindow:
    latency = window.latency if window.latency > 0 else 1.0
    window = replace(window, latency=0.0)  # its parts are independent of each other
    parts = _PARTS * min(1.0, window.seconds / (_LATENCIES * latency))
    random = _RUNAWAY_ERRORS * math.sqrt(2 * window.load * window.seconds)
    runaway = window.reached > max(_LEAST_RUNAWAY, _RUNAWAY * expected_in_flight(before, window.load), random)
    if window.trend is Trend.RISING and (runaway or window.seconds >= longest):
        return replace(window, counted=_GROWING, missed=_GROWING, events=(1.0,), trend=Trend.SETTLED)
    return replace(window, counted=parts if window.trend is Trend.SETTLED else 0.0, missed=0.0, events=())
