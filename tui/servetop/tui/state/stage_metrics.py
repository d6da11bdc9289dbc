"""The results of each stage up to a time, for screens that compare stages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from servetop.analysis.cells.attempts import CellAttempt, StageHistory, StageTally, cell_attempts, session_starts
from servetop.analysis.goodput import Attainment, attainment
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.events import StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.tick import TICK_SECONDS
from servetop.tui.drawing.heat_map import BinnedHistograms

LENGTHS = ("input_len", "output_len")
METRICS = ("ttft", "itl", "tpot", "e2el", *LENGTHS)
"""The histograms that are compared: latencies in seconds, lengths in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageMetrics:
    """The results of one stage with a load."""

    stage: StageChange
    attempt: CellAttempt
    ended: bool
    output_rate: float
    """Output tokens/s, mean from its start to the end of its last request; NaN before its first tick."""
    busy_seconds: float = 0.0
    """The time over which `output_rate` is the mean, in whole ticks."""
    target_rates: tuple[float, float]
    """Target rate at its begin and end, requests/s; inf in a closed loop, NaN before its first ticks."""
    concurrency_limits: tuple[float, float]
    """Concurrency limit at its begin and end; NaN without one."""
    backlog: float
    """Requests that waited at the client or in the engine when it began."""
    preemptions: float
    """NaN if not exported."""
    histograms: Mapping[str, LogHistogram]
    """By metric of `METRICS`; also `ttfot`, which only objectives use."""
    goodput: float
    """Requests/s that met all objectives, over the same time as `output_rate`; NaN before its first tick."""
    attainment: Attainment
    """Its `window` is the stage; unknown without objectives and in recordings that lack the counts."""


def stage_metrics(
    history: TickHistory, binned: BinnedHistograms, rows: StageHistory, at: float, *, over: bool = False
) -> list[StageMetrics]:
    """Return the stages with a load that started by `at`, without warm-ups; the last has ended if the run is `over`.

    `rows` needs no tallies: they are those of the ticks.
    """
    started = [stage for stage in rows.stages if stage.at <= at]
    tallies = _tallies(history, started, session_starts(rows.notes), at)
    attempts = cell_attempts(replace(rows, stages=started, tallies=tallies, end=rows.end if over else None))
    found = []
    for number, stage in enumerate(started):
        before = started[number - 1] if number else None
        goes_on = before is not None and before.request_rate is not None and before.index == stage.index
        if stage.request_rate is None or stage.warmup or goes_on:
            continue
        followed = number + 1 < len(started)
        start = history.first_from(stage.at)
        stop = history.first_from(started[number + 1].at) if followed else history.up_to(at)
        merge = binned.between if followed else history.histogram
        since = start if number else history.up_to(stage.at)  # the first tick has nothing of another stage
        inner = {"start": start + 1, "stop": max(stop - 1, start + 1)}
        preempted = history.column("preemptions", start=start, stop=stop)
        found.append(
            StageMetrics(
                stage=stage,
                attempt=attempts[stage.index],
                ended=followed or over,
                busy_seconds=(busy := _busy_seconds(history, start, stop, stage=stage.index)),
                output_rate=_rate(history, "output_tokens", start, stop, seconds=busy),
                goodput=_rate(history, "good", start, stop, seconds=busy),
                target_rates=_ends(history.column("request_rate", **inner)),
                concurrency_limits=_ends(history.column("max_concurrency", **inner)),
                backlog=_backlog(history, start, stop),
                preemptions=math.nan if np.isnan(preempted).all() else float(np.nansum(preempted)),
                histograms={metric: merge(metric, start=since, stop=stop) for metric in (*METRICS, "ttfot")},
                attainment=attainment(history, start, stop),
            )
        )
    return found


def _tallies(
    history: TickHistory, stages: Sequence[StageChange], resumed: Sequence[float], at: float
) -> dict[int, StageTally]:
    """Return what the ticks counted in each stage until the next one, or the end of its session."""
    ends = [*(stage.at for stage in stages), at][1:]
    found: dict[int, StageTally] = {}
    for stage, following in zip(stages, ends, strict=True):
        if stage.request_rate is None or stage.index in found:
            continue
        until = min([following, *(seam for seam in resumed if seam >= stage.at)])
        start, stop = history.first_from(stage.at), history.up_to(until)
        ok, failed = (int(history.column(name, start=start, stop=stop).sum()) for name in ("ok", "failed"))
        left = sum(history.value(name, stop - 1) for name in ("in_flight", "queued")) if stop > start else 0
        found[stage.index] = StageTally(ok=ok, failed=failed, left=round(left), until=until)
    return found


def _busy_seconds(history: TickHistory, start: int, stop: int, *, stage: int) -> float:
    """The time of a stage without that after its last request, such as a restart of the engine."""

    def column(name: str) -> FloatArray:
        return history.column(name, start=start, stop=stop)

    tokens = column("output_tokens")
    under_way = (tokens > 0) | (column("in_flight") + column("queued") > 0)
    busy = np.flatnonzero(under_way & (column("stage") == stage))  # the last tick may contain the next stage's begin
    return (int(busy[-1]) + 1 if busy.size else tokens.size) * TICK_SECONDS


def _rate(history: TickHistory, name: str, start: int, stop: int, *, seconds: float) -> float:
    """The sum of a column per second; NaN for no time."""
    return float(history.column(name, start=start, stop=stop).sum()) / seconds if seconds > 0 else math.nan


def _ends(values: FloatArray) -> tuple[float, float]:
    """Return the first and the last known value; NaN if there is none."""
    known = values[~np.isnan(values)]
    return (float(known[0]), float(known[-1])) if known.size else (math.nan, math.nan)


def _backlog(history: TickHistory, start: int, stop: int) -> float:
    """Return the number of requests that waited at the end of the first tick; unknown counts are 0."""
    if stop <= start:
        return 0.0
    return float(np.nansum([history.value("queued", start), history.value("waiting", start)]))
