"""Requests in flight at the client at any instant of a run, from its raw rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.core.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class InFlightTimeline:
    """Every instant at which a request was sent or ended, ascending, and the number in flight after it."""

    instants: FloatArray
    levels: IntArray

    @classmethod
    def of(cls, sent: FloatArray, ended: FloatArray) -> InFlightTimeline:
        """Build the timeline from the two instants of each request."""
        instants = np.concatenate([ended, sent])
        steps = np.repeat(np.array([-1, 1]), [ended.size, sent.size])
        order = np.argsort(instants, kind="stable")  # ends first, where an end and a start coincide
        return cls(instants[order], np.cumsum(steps[order]))

    def at(self, instants: FloatArray) -> IntArray:
        """Requests in flight at each instant."""
        position = np.searchsorted(self.instants, instants, side="right")
        return np.concatenate([[0], self.levels])[position]

    def in_flight(self, run: RunColumns, instants: FloatArray) -> FloatArray:
        """Requests in flight, from the ticks if the run was cut off: then there are no rows of its last requests."""
        if run.end is not None or not run.tick_ends.size:
            return self.at(instants).astype(np.float64)
        return np.interp(instants, run.tick_ends, run.in_flight)

    def busy(self, run: RunColumns, period: Period) -> Period | None:
        """From the first to the last instant of the period with requests in flight; None without any."""
        edges = np.array([each for each in (period.start, period.until) if math.isfinite(each)])
        known = self.instants if run.end is not None or not run.tick_ends.size else run.tick_ends
        instants = np.sort(np.concatenate([edges, known[period.holds(known)]]))
        loaded = np.flatnonzero(self.in_flight(run, instants) > 0)
        if not loaded.size:
            return None
        last = min(int(loaded[-1]) + 1, instants.size - 1)  # what is in flight after an instant is so until the next
        return Period(start=float(instants[loaded[0]]), until=float(instants[last]))

    def limited(self, requests: RequestColumns, run: RunColumns) -> BoolArray:
        """Which requests the concurrency limit made wait: it was reached at some time between due and sent."""
        if not np.isfinite(run.limits).any():
            return np.zeros(requests.due.shape, dtype=bool)
        full = np.concatenate([[False], self.levels >= run.limit_at(self.instants)])
        times_full = np.cumsum(full)
        at_due = np.searchsorted(self.instants, requests.due, side="right")
        at_sent = np.searchsorted(self.instants, requests.sent, side="left")
        since_due = times_full[np.maximum(at_sent, at_due)] - times_full[at_due]
        return np.asarray(~np.isnan(requests.sent) & (full[at_due] | (since_due > 0)))
