"""The worst TTFT of a period of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.marks import WINDOW
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.trailing import ticks_of

_MOST_WINDOWS = 400
"""Windows in which the worst TTFT is searched; they overlap, those of a long run less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstTtft:
    """The highest p99 of TTFT (from due) over WINDOW seconds."""

    seconds: float
    at: float


def worst_ttft(run: RunRecord, start: float, until: float) -> WorstTtft | None:
    """Return the worst p99 of TTFT from due over any WINDOW seconds of a period; None without a first token in it.

    The last window ends with the last first token: in a later one only a few requests of the same seconds are left.
    """
    first, stop = run.history.up_to(start), run.history.up_to(until)  # a load begins within a tick
    started = np.flatnonzero(run.history.column("first_tokens", start=first, stop=max(first, stop)))
    stop = first + int(started.max(initial=-1)) + 1
    step = max(1, -(-(stop - first) // _MOST_WINDOWS))
    starts = range(first, max(first, stop - ticks_of(WINDOW)) + 1, step)
    windows = [(low, min(low + ticks_of(WINDOW), stop)) for low in starts]
    found = [each[2] for each in run.history.sliding_percentiles("ttft_due", windows)]
    value = max((each for each in found if not math.isnan(each)), default=math.nan)
    if math.isnan(value):
        return None
    worst = windows[found.index(value)]
    ticks = [tick for tick in run.history.ticks[slice(*worst)] if tick.client.ttft_due.buckets.size]
    return WorstTtft(seconds=value, at=max(ticks, key=lambda tick: tick.client.ttft_due.percentile(99)).end)
