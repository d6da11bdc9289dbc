"""The part of a run in which the load neither builds up nor ends: the window in which two runs are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.core.arrays import BoolArray

LEAST_REQUESTS = 30
"""Completed requests below which a window says too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyPart:
    """A window of one run: from a median E2EL after its first request until its last one was sent; seconds."""

    start: float
    end: float
    whole: bool
    """Whether the run is too short for a window, and counts as a whole."""

    def sent_within(self, rows: ClientRows) -> BoolArray:
        """Return a mask of the requests sent within the window."""
        if self.whole:
            return np.ones(rows.sent.shape, bool)
        return np.asarray((rows.sent >= self.start) & (rows.sent <= self.end))

    def ended_within(self, rows: ClientRows) -> BoolArray:
        """Return a mask of the requests that ended within the window."""
        if self.whole:
            return np.ones(rows.sent.shape, bool)
        return np.asarray((rows.ended >= self.start) & (rows.ended < self.end))


def typical_e2el(*runs: ClientRows) -> float:
    """Return the median E2EL of the completed requests of some runs, in seconds; 0 without any."""
    found = np.concatenate([each.e2el[each.ok] for each in runs])
    known = found[~np.isnan(found)]
    return float(np.median(known)) if known.size else 0.0


def steady_parts(a: ClientRows, b: ClientRows) -> tuple[SteadyPart, SteadyPart]:
    """Return the windows of two runs by the same rule; whole runs if one of them has too few requests within."""
    settling = typical_e2el(a, b)
    parts = tuple(_part(each, settling) for each in (a, b))
    enough = all(
        each.times_known and (part.sent_within(each) & each.ok).sum() >= LEAST_REQUESTS
        for each, part in zip((a, b), parts, strict=True)
    )
    if enough:
        return parts[0], parts[1]
    first, second = (SteadyPart(start=part.start, end=part.end, whole=True) for part in parts)
    return first, second


def _part(rows: ClientRows, settling: float) -> SteadyPart:
    start, end = (float(rows.sent[0]), float(rows.sent[-1])) if rows.sent.size else (0.0, 0.0)
    return SteadyPart(start=start + settling, end=end, whole=False)
