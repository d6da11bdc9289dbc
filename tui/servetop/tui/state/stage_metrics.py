"""The results of each stage up to a time, for screens that compare stages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.tick import TICK_SECONDS
from servetop.tui.drawing.heat_map import BinnedHistograms

DIP = 0.95
"""A dip is less than this share of the best throughput at a lower rate; smaller differences are noise."""
LENGTHS = ("input_len", "output_len")
METRICS = ("ttft", "itl", "tpot", "e2el", *LENGTHS)
"""The histograms that are compared: latencies in seconds, lengths in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageMetrics:
    """The results of one stage with a load."""

    stage: StageChange
    ended: bool
    output_rate: float
    """Output tokens/s, mean over the stage; NaN before its first tick."""
    preemptions: float
    """NaN if not exported."""
    histograms: Mapping[str, LogHistogram]
    """By metric of `METRICS`; also `ttfot`, which only objectives use."""


def stage_metrics(
    history: TickHistory, binned: BinnedHistograms, stages: Sequence[StageChange], at: float, *, over: bool = False
) -> list[StageMetrics]:
    """The stages with a load that started by `at`, without warm-ups; the last has ended if the run is `over`."""
    started = [stage for stage in stages if stage.at <= at]
    found = []
    for number, stage in enumerate(started):
        if stage.request_rate is None or stage.warmup:
            continue
        followed = number + 1 < len(started)
        start = history.first_from(stage.at)
        stop = history.first_from(started[number + 1].at) if followed else history.up_to(at)
        merge = binned.between if followed else history.histogram
        preempted = history.column("preemptions", start=start, stop=stop)
        seconds = (stop - start) * TICK_SECONDS
        tokens = float(history.column("output_tokens", start=start, stop=stop).sum())
        found.append(
            StageMetrics(
                stage=stage,
                ended=followed or over,
                output_rate=tokens / seconds if seconds > 0 else math.nan,
                preemptions=math.nan if np.isnan(preempted).all() else float(np.nansum(preempted)),
                histograms={metric: merge(metric, start=start, stop=stop) for metric in (*METRICS, "ttfot")},
            )
        )
    return found


def dips(done: Mapping[tuple[int | None, float], float]) -> set[tuple[int | None, float]]:
    """Finished cells with clearly less throughput than the same batch size at a lower rate."""
    return {
        (batch, rate)
        for (batch, rate), value in done.items()
        if value < DIP * max((done[each] for each in done if each[0] == batch and each[1] < rate), default=0.0)
    }
