"""The time window of the batch film: short enough to show each request, and to need no more requests than are read."""

from __future__ import annotations

import math

import numpy as np

from servetop.analysis.series.stats_series import StatsSeries
from servetop.tui.state.frame import Frame

MOST_FILM_REQUESTS = 1_000
"""Requests read for the film, at most: three batches of 256 and those that wait."""

LENGTHS = (4.0, 8.0, 12.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0)
"""Lengths of the window in seconds; their quarters, which the time axis labels, are whole seconds."""
_CELLS_PER_REQUEST = 8
"""Cells of the median request's time in the batch, at least."""
_MOST_PARTS = 10
"""A request is taken to be in the batch for this fraction of its time, at least."""
_STEPS = 8
"""The window moves in steps of this fraction of its length, so that requests keep still in between."""
_HYSTERESIS = 1.5
"""A length stays until it is too long or too short by this factor."""
_FULL, _SPARSE = 0.95, 0.7
"""Shares of the requests read: a length is too long above the first, and grows if the longer one needs the second."""
_WAITING_SHARE = 0.8
"""Share of the waiting requests that are not read: not all, because the order of admission is the engine's."""


def film_length(previous: float, frame: Frame, columns: int) -> float:
    """The length in seconds for this frame, given that of the last one (0 for none), which stays if it is close."""
    series, at = frame.stats.series, frame.view.playhead.at
    if not series.times.size:
        return LENGTHS[0]
    most = max(frame.view.span or at, LENGTHS[0])
    ttft, e2el = (_last(series.latencies[name][0]) for name in ("ttft", "e2el"))
    typical = max(e2el - ttft, e2el / _MOST_PARTS)
    detail = columns * typical / _CELLS_PER_REQUEST if typical > 0 else most

    def fits(length: float, *, share: float, slack: float) -> bool:
        if length > most or not length <= detail * slack:
            return False
        needed = in_flight_during(series, at - length, read_until(series, at - length, at))
        return needed <= MOST_FILM_REQUESTS * share

    longer = [length for length in LENGTHS if length > previous and fits(length, share=_SPARSE, slack=1 / _HYSTERESIS)]
    if previous and fits(previous, share=1.0, slack=_HYSTERESIS):
        return longer[-1] if longer else previous
    return max((length for length in LENGTHS if fits(length, share=_FULL, slack=1.0)), default=LENGTHS[0])


def in_flight_during(series: StatsSeries, start: float, until: float) -> int:
    """Return the requests in flight at the start, and those sent from then on."""
    if not series.times.size:
        return 0
    first, last = np.searchsorted(series.times, (start, until), side="right")
    before = float(np.nan_to_num(series.in_flight[first - 1])) if first else 0.0
    return round(before + float(series.sent[first:last].sum()) * bin_seconds(series))


def film_window(frame: Frame, length: float) -> tuple[float, float]:
    """Left and right edge of the film in seconds; a cursor to the left of it takes the film along."""
    step = length / _STEPS
    right = max(math.ceil(frame.view.playhead.at / step - 1e-9), 1) * step
    cursor = frame.cursor
    if cursor is not None and cursor <= right - length:
        right = min(right, math.ceil(cursor / step + _STEPS // 2) * step)
    return (right - length, right)


def read_until(series: StatsSeries, start: float, until: float) -> float:
    """The time in seconds up to which requests are read, so that those of the window from `start` on are not too many.

    Requests sent later wait at `until`, if the engine admits them in order.
    """
    stop = int(np.searchsorted(series.times, until, side="right"))
    waiting = _last(series.waiting[:stop])
    excess = in_flight_during(series, start, until) - MOST_FILM_REQUESTS
    if not waiting > 0 or excess <= 0:
        return until
    size = bin_seconds(series)
    sent = np.cumsum(series.sent[:stop][::-1]) * size
    return until - int(np.searchsorted(sent, min(waiting * _WAITING_SHARE, excess), side="right")) * size


def bin_seconds(series: StatsSeries) -> float:
    """Return the length of the bins of a series that is not empty, seconds."""
    return float(series.times[1] - series.times[0]) if series.times.size > 1 else float(series.times[0])


def _last(values: np.ndarray) -> float:
    """Return the newest known value; NaN if there is none."""
    known = values[~np.isnan(values)]
    return float(known[-1]) if known.size else math.nan
