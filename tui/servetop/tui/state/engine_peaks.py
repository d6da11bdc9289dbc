"""The largest values of a finished run, which panels show instead of those of its last seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.judgement.episode import Episode, EpisodeKind
from servetop.analysis.series.tick_history import TickHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePeaks:
    """Maxima over all samples of a run; NaN for what the engine does not export."""

    running: float = math.nan
    waiting: float = math.nan
    preemptions: float = math.nan
    """Preemptions/s during the worst of their episodes; NaN without an episode."""


def engine_peaks(history: TickHistory, episodes: Sequence[Episode]) -> EnginePeaks:
    """The maxima of a history and of the episodes found in it."""
    worst = (episode.worst for episode in episodes if episode.kind is EpisodeKind.PREEMPTIONS)
    return EnginePeaks(
        running=_maximum(history, "running"),
        waiting=_maximum(history, "waiting"),
        preemptions=max(worst, default=math.nan),
    )


def _maximum(history: TickHistory, column: str) -> float:
    return float(np.fmax.reduce(history.column(column), initial=math.nan))
