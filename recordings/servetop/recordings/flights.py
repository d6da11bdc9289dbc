"""How many requests were in flight at the client at any instant of a run, from all of its raw rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray, IntArray
from servetop.recordings.reader import RecordingReader
from servetop.recordings.request_codec import ENDED
from servetop.recordings.run_data import RunData
from servetop.recordings.samples import BoolArray, Samples


@dataclass(frozen=True, slots=True, eq=False)
class Flights:
    """Every instant at which a request was sent or ended, ascending, and how many were in flight after it."""

    instants: FloatArray
    levels: IntArray

    @classmethod
    def load(cls, reader: RecordingReader) -> Flights:
        """Read when each request was sent and ended (an index holds both); 16 bytes a request."""
        rows = reader.request_rows(("sent", ENDED), where=f"{ENDED} IS NOT NULL")
        pairs = np.fromiter(rows, dtype=[("sent", "f8"), ("ended", "f8")])
        return cls.of(pairs["sent"], pairs["ended"])

    @classmethod
    def of(cls, sent: FloatArray, ended: FloatArray) -> Flights:
        """From both instants of each request."""
        instants = np.concatenate([ended, sent])
        steps = np.repeat(np.array([-1, 1]), [ended.size, sent.size])
        order = np.argsort(instants, kind="stable")  # ends first, where an end and a start coincide
        return cls(instants[order], np.cumsum(steps[order]))

    def at(self, instants: FloatArray) -> IntArray:
        """Requests in flight at each instant."""
        position = np.searchsorted(self.instants, instants, side="right")
        return np.concatenate([[0], self.levels])[position]

    def held_back(self, samples: Samples, run: RunData) -> BoolArray:
        """Which requests the concurrency limit made wait: it was reached at some time between due and sent."""
        if not np.isfinite(run.limits).any():
            return np.zeros(samples.due.shape, dtype=bool)
        full = np.concatenate([[False], self.levels >= run.limit_at(self.instants)])
        times_full = np.cumsum(full)
        at_due = np.searchsorted(self.instants, samples.due, side="right")
        at_sent = np.searchsorted(self.instants, samples.sent, side="left")
        since_due = times_full[np.maximum(at_sent, at_due)] - times_full[at_due]
        return np.asarray(~np.isnan(samples.sent) & (full[at_due] | (since_due > 0)))
