"""The worst TTFT of a period of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from servetop.analysis.judgement.marks import WINDOW
from servetop.analysis.judgement.run_record import RunRecord
from servetop.core.tick import TICK_SECONDS

_MOST_WINDOWS = 200
"""Windows over an overload in which the worst TTFT is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstTtft:
    """The highest p99 of TTFT (from due) over WINDOW seconds."""

    seconds: float
    at: float


def worst_ttft(run: RunRecord, start: float, until: float) -> WorstTtft | None:
    """Return the worst p99 of TTFT from due over windows of a period; None if no first token arrived in it."""
    first, stop = run.history.first_from(start), run.history.up_to(until)
    width = max(round(WINDOW / TICK_SECONDS), -(-(stop - first) // _MOST_WINDOWS))
    worst, value = (first, first), -math.inf
    for low in range(first, stop, width):
        high = min(low + width, stop)
        found = run.history.histogram("ttft_due", start=low, stop=high).percentile(99)
        if found > value:
            worst, value = (low, high), found
    ticks = [tick for tick in run.history.ticks[slice(*worst)] if tick.client.ttft_due.buckets.size]
    if not ticks:
        return None
    return WorstTtft(seconds=value, at=max(ticks, key=lambda tick: tick.client.ttft_due.percentile(99)).end)
