"""The number of requests in flight at the client over a run, from its raw rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.core.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class InFlightTimeline:
    """All times at which a request was sent or ended, ascending, and the number in flight after each."""

    times: FloatArray
    levels: IntArray

    @classmethod
    def of(cls, sent: FloatArray, ended: FloatArray) -> InFlightTimeline:
        """Build the timeline from the times at which each request was sent and ended.

        Requests that were never sent (NaN) are not counted; those without an end stay in flight.
        """
        was_sent = ~np.isnan(sent)
        starts, ends = sent[was_sent], np.fmax(ended, sent)[was_sent & ~np.isnan(ended)]
        times = np.concatenate([ends, starts])
        steps = np.repeat(np.array([-1, 1]), [ends.size, starts.size])
        order = np.argsort(times, kind="stable")  # at equal times, ends come first
        return cls(times[order], np.cumsum(steps[order]))

    def at(self, times: FloatArray) -> IntArray:
        """Return the number of requests in flight at each time."""
        position = np.searchsorted(self.times, times, side="right")
        return np.concatenate([[0], self.levels])[position]

    def in_flight(self, run: RunColumns, times: FloatArray) -> FloatArray:
        """Return the number of requests in flight, from the ticks if a killed run lacks its last request rows."""
        if run.end is not None or not run.tick_ends.size:
            return self.at(times).astype(np.float64)
        return np.interp(times, run.tick_ends, run.in_flight)

    def busy(self, run: RunColumns, period: Period) -> Period | None:
        """Return the period from the first to the last time with requests in flight; None if there is none."""
        edges = np.array([each for each in (period.start, period.until) if math.isfinite(each)])
        known = self.times if run.end is not None or not run.tick_ends.size else run.tick_ends
        times = np.sort(np.concatenate([edges, known[period.contains(known)]]))
        loaded = np.flatnonzero(self.in_flight(run, times) > 0)
        if not loaded.size:
            return None
        last = min(int(loaded[-1]) + 1, times.size - 1)  # a request is in flight until the next known time
        return Period(start=float(times[loaded[0]]), until=float(times[last]))

    def limited(self, requests: RequestColumns, run: RunColumns) -> BoolArray:
        """Return a mask of the requests that the concurrency limit delayed: it was reached between due and sent."""
        if not np.isfinite(run.limits).any():
            return np.zeros(requests.due.shape, dtype=bool)
        full = np.concatenate([[False], self.levels >= run.limit_at(self.times)])
        times_full = np.cumsum(full)
        at_due = np.searchsorted(self.times, requests.due, side="right")
        at_sent = np.searchsorted(self.times, requests.sent, side="left")
        since_due = times_full[np.maximum(at_sent, at_due)] - times_full[at_due]
        return np.asarray(~np.isnan(requests.sent) & (full[at_due] | (since_due > 0)))
