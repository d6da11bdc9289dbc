"""The largest values of a finished run, which panels show instead of those of its last seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.engine_gauges import describe_before
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.events import StageChange
from servetop.core.tick import TICK_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePeaks:
    """Maxima over all samples of a run; NaN for what the engine does not export."""

    running: float = math.nan
    waiting: float = math.nan
    preemptions: float = math.nan
    """Preemptions/s during the worst of their episodes; NaN without an episode."""
    reason: str = ""
    """Why running and waiting are unknown although the engine exports them; empty if they are not."""


def engine_peaks(
    history: TickHistory, episodes: Sequence[Episode], *, stages: Sequence[StageChange] = (), page_age: float = 0.0
) -> EnginePeaks:
    """Return the maxima of a history and of the episodes found in it.

    Pages that may be `page_age` seconds old do not count where they may describe the time before the first stage.
    """
    starts = np.array([each.at for each in stages if each.request_rate is not None][:1])
    ends = (np.array(history.ticks.indexes, dtype=np.float64) + 1) * TICK_SECONDS
    old = describe_before(ends, starts, page_age=page_age)
    running, waiting = (history.column(name) for name in ("running", "waiting"))
    known = ~np.isnan(running) | ~np.isnan(waiting)
    worst = (episode.worst for episode in episodes if episode.kind is EpisodeKind.PREEMPTIONS)
    return EnginePeaks(
        running=_maximum(running[~old]),
        waiting=_maximum(waiting[~old]),
        preemptions=max(worst, default=math.nan),
        reason=f"page up to {page_age:g} s old" if known.any() and not known[~old].any() else "",
    )


def _maximum(values: FloatArray) -> float:
    return float(np.fmax.reduce(values, initial=math.nan))
