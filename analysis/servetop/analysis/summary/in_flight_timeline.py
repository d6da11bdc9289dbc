"""The number of requests in flight at the client over a run, from its raw rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.core.arrays import BoolArray, FloatArray, IntArray

_BLOCK = 100_000
"""Times that are looked up at once, to save memory."""


@dataclass(frozen=True, slots=True, eq=False)
class InFlightTimeline:
    """The times at which requests were sent and ended, each ascending; takes 16 bytes per request.

    Of requests that are sent and end at the same time, the ends come first.
    """

    sent: FloatArray
    ended: FloatArray

    @classmethod
    def of(cls, sent: FloatArray, ended: FloatArray) -> InFlightTimeline:
        """Build the timeline from the times at which each request was sent and ended.

        Requests that were never sent (NaN) are not counted; those without an end stay in flight.
        """
        ends = np.fmax(ended, sent)
        ends = ends[~(np.isnan(sent) | np.isnan(ended))]
        starts = sent[~np.isnan(sent)]
        starts.sort()
        ends.sort()
        return cls(starts, ends)

    def at(self, times: FloatArray) -> IntArray:
        """Return the number of requests in flight at each time."""
        level = np.searchsorted(self.sent, times, side="right")
        level -= np.searchsorted(self.ended, times, side="right")
        return level

    @property
    def highest(self) -> int:
        """The most requests in flight at once."""
        return max((int(levels.max()) for _, levels in self._levels_after_sending()), default=0)

    def in_flight(self, run: RunColumns, times: FloatArray) -> FloatArray:
        """Return the number of requests in flight, from the ticks if a killed run lacks its last request rows."""
        if run.end is not None or not run.tick_ends.size:
            return self.at(times).astype(np.float64)
        return np.interp(times, run.tick_ends, run.in_flight)

    def busy(self, run: RunColumns, period: Period) -> Period | None:
        """Return the period from the first to the last time with requests in flight; None if there is none."""
        edges = np.array([each for each in (period.start, period.until) if math.isfinite(each)])
        known = (self.sent, self.ended) if run.end is not None or not run.tick_ends.size else (run.tick_ends,)
        blocks = [block for times in known for block in _blocks(times)]
        first, last = math.inf, -math.inf
        for times in (edges, *(block[period.contains(block)] for block in blocks)):
            loaded = times[self.in_flight(run, times) > 0]
            if loaded.size:
                first, last = min(first, float(loaded.min())), max(last, float(loaded.max()))
        if math.isinf(first):
            return None
        # a request is in flight until the next known time
        later = [block[period.contains(block) & (block > last)] for block in blocks if block[-1] > last]
        return Period(
            start=first,
            until=min([float(each.min()) for each in (edges[edges > last], *later) if each.size], default=last),
        )

    def limited(self, requests: RequestColumns, run: RunColumns) -> BoolArray:
        """Return a mask of the requests that the concurrency limit delayed: it was reached between due and sent."""
        if not np.isfinite(run.limits).any():
            return np.zeros(requests.due.shape, dtype=bool)
        reached = self._limit_reached(run)
        found = [
            self._limited(due, sent, reached, run)
            for due, sent in zip(_blocks(requests.due), _blocks(requests.sent), strict=True)
        ]
        return np.concatenate([np.zeros(0, dtype=bool), *found])

    def _limited(self, due: FloatArray, sent: FloatArray, reached: FloatArray, run: RunColumns) -> BoolArray:
        before = np.fmax(*(_last_until(times, due) for times in (self.sent, self.ended)))
        at_due = ~np.isnan(before) & (self.at(due) >= run.limit_at(before))
        since_due = np.searchsorted(reached, sent, side="left") > np.searchsorted(reached, due, side="right")
        return np.asarray(~np.isnan(sent) & (at_due | since_due))

    def _limit_reached(self, run: RunColumns) -> FloatArray:
        """Return the times at which a request was sent or ended and as many as the limit were in flight after it."""
        found = [times[levels >= run.limit_at(times)] for times, levels in self._levels_after_sending()]
        for first, times in zip(range(0, self.ended.size, _BLOCK), _blocks(self.ended), strict=True):
            levels = np.searchsorted(self.sent, times, side="left") - np.arange(first + 1, first + 1 + times.size)
            found.append(times[levels >= run.limit_at(times)])
        return np.sort(np.concatenate([np.empty(0), *found]))

    def _levels_after_sending(self) -> Iterator[tuple[FloatArray, IntArray]]:
        """Yield blocks of times at which requests were sent, and the number in flight after each."""
        for first, times in zip(range(0, self.sent.size, _BLOCK), _blocks(self.sent), strict=True):
            yield times, np.arange(first + 1, first + 1 + times.size) - np.searchsorted(self.ended, times, side="right")


def _blocks(values: FloatArray) -> Iterator[FloatArray]:
    return (values[first : first + _BLOCK] for first in range(0, values.size, _BLOCK))


def _last_until(times: FloatArray, until: FloatArray) -> FloatArray:
    """Return the last of some ascending times up to each of others; NaN if there is none."""
    if not times.size:
        return np.full(until.shape, math.nan)
    count = np.searchsorted(times, until, side="right")
    return np.where(count > 0, times[np.maximum(count - 1, 0)], math.nan)
