"""The statistics that panels show at one time of a run, as a pure function of the ticks up to that time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from servetop.analysis.gpu_summary import joules_per_token, newest_gpus
from servetop.analysis.series.smoothing import SmoothedRate, smoothed_rate
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.ttft_breakdown import TtftBreakdown, ttft_breakdown
from servetop.analysis.verdicts.live_trust import live_trust
from servetop.analysis.verdicts.trust import Trust
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.events import EngineSample, GpuSample
from servetop.core.tick import TICK_SECONDS, LoadGauges

LATENCIES = ("ttft", "itl", "e2el")
"""Metrics whose percentiles are shown over time."""
_COUNTED = {
    "offered": "due", "sent": "sent", "completed": "ok", "failed": "failed",
    "output_tokens": "output_tokens", "prompt_tokens": "prompt_tokens",
}  # fmt: skip
"""The tick column of each count that has both a rate and a total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Percentiles of one metric over the sliding window, in seconds; NaN if nothing was measured."""

    p50: float = math.nan
    p90: float = math.nan
    p99: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Mean rates per second over the sliding window; NaN before the first tick and if not exported."""

    offered: float = math.nan
    sent: float = math.nan
    completed: float = math.nan
    failed: float = math.nan
    output_tokens: float = math.nan
    prompt_tokens: float = math.nan
    engine_output_tokens: float = math.nan
    preemptions: float = math.nan
    prefix_cache_hit_rate: float = math.nan
    """Fraction, 0..1, of the tokens queried in the window that were cached; NaN also if none was queried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts since the start of the run."""

    offered: int = 0
    sent: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    output_tokens: int = 0
    prompt_tokens: int = 0
    preemptions: float = math.nan
    prefix_cache_hit_rate: float = math.nan
    """Fraction of the tokens queried in this run, excluding the engine's counts from before the run."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StatsSeries:
    """Series for charts, with one value per time bin and NaN for gaps. All arrays have shape (bins,)."""

    times: FloatArray
    """End of each bin, in seconds since the run's origin."""
    offered: FloatArray
    sent: FloatArray
    completed: FloatArray
    in_flight: FloatArray
    queued: FloatArray
    output_tokens: FloatArray
    prompt_tokens: FloatArray
    engine_output_tokens: FloatArray
    kv_usage: FloatArray
    running: FloatArray
    waiting: FloatArray
    preemptions: FloatArray
    latencies: Mapping[str, FloatArray]
    """p50, p90 and p99 of each metric over the sliding window; shape (3, bins)."""
    stages: IntArray
    """Index of the stage at the end of each bin; -1 before the load."""
    target: FloatArray = field(default_factory=lambda: np.empty(0))
    """Requests/s in force at the end of each bin, with ramps and steering; NaN without one, as in a closed loop."""
    target_concurrency: FloatArray = field(default_factory=lambda: np.empty(0))
    """The concurrency limit in force at the end of each bin."""
    smoothed: Mapping[str, SmoothedRate] = field(default_factory=dict)
    """Trailing rates of `offered`, `sent` and `completed` requests."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveStats:
    """The statistics at one time of a run, live or replayed."""

    at: float
    window: float
    """Length in seconds of the sliding window of rates and percentiles."""
    span: float
    """Length in seconds of `series`, which ends at `at`."""
    load: LoadGauges = LoadGauges()
    rates: Rates = Rates()
    totals: Totals = Totals()
    latencies: Mapping[str, Percentiles] = field(default_factory=dict)
    events_unsized: bool = False
    """Whether events arrived in the window with unknown numbers of tokens, so that there is no ITL (yet)."""
    engine: EngineSample | None = None
    """The newest sample; its age is `at - engine.scrape_end`."""
    sample_interval: float = 0.0
    """Seconds between the newest two samples: long if the source has a slow period of its own; 0 with fewer."""
    gpus: tuple[GpuSample, ...] = ()
    """The newest sample of each GPU, at most two seconds old."""
    joules_per_token: float = math.nan
    """GPU energy per output token over the sliding window."""
    trust: Trust = Trust()
    ttft: TtftBreakdown = TtftBreakdown()
    series: StatsSeries


def live_stats(
    history: TickHistory, at: float, *, window: float = 10.0, span: float = 120.0, columns: int = 120
) -> LiveStats:
    """Return the statistics at `at`: over the window, totals, and series of at most `columns` bins over `span`."""
    stop = history.up_to(at)
    start = history.first_from(at - window)
    series = _series(history, at, window=window, span=span, columns=columns)
    if stop == 0:
        return LiveStats(at=at, window=window, span=span, series=series)
    newest = history.ticks[stop - 1]
    return LiveStats(
        at=at,
        window=window,
        span=span,
        load=newest.client.gauges,
        rates=_rates(history, start, stop),
        totals=_totals(history, stop),
        latencies={name: Percentiles(**_named(history, name, start, stop)) for name in LATENCIES},
        events_unsized=_events_unsized(history, start, stop),
        engine=_newest_sample(history, stop),
        sample_interval=_sample_interval(history, stop),
        gpus=newest_gpus(history, stop),
        joules_per_token=joules_per_token(history, start, stop),
        trust=live_trust(history, start, stop),
        ttft=ttft_breakdown(history, start, stop),
        series=series,
    )


def _named(history: TickHistory, name: str, start: int, stop: int) -> dict[str, float]:
    p50, p90, p99 = history.percentiles(name, start=start, stop=stop)
    return {"p50": p50, "p90": p90, "p99": p99}


def _events_unsized(history: TickHistory, start: int, stop: int) -> bool:
    clients = [tick.client for tick in history.ticks[start:stop]]
    gaps = sum(client.chunks - client.ttft.count for client in clients)
    return gaps > 0 and not any(client.itl.buckets.size for client in clients)


def _newest_sample(history: TickHistory, stop: int) -> EngineSample | None:
    sampled = history.last_known("scrape_end", stop=stop)
    return None if sampled is None else history.ticks[sampled].engine


def _sample_interval(history: TickHistory, stop: int) -> float:
    newest = history.last_known("scrape_end", stop=stop)
    before = None if newest is None else history.last_known("scrape_end", stop=newest)
    if newest is None or before is None:
        return 0.0
    return history.value("scrape_end", newest) - history.value("scrape_end", before)


def _rates(history: TickHistory, start: int, stop: int) -> Rates:
    seconds = (stop - start) * TICK_SECONDS
    if seconds <= 0:
        return Rates()

    def rate(column: str) -> float:
        values = history.column(column, start=start, stop=stop)
        return float(np.nansum(values)) / seconds if not np.isnan(values).all() else math.nan

    return Rates(
        **{name: rate(column) for name, column in _COUNTED.items()},
        engine_output_tokens=rate("engine_output_tokens"),
        preemptions=rate("preemptions"),
        prefix_cache_hit_rate=_hit_rate(history, start, stop),
    )


def _hit_rate(history: TickHistory, start: int, stop: int) -> float:
    hits, queries = (history.column(f"prefix_cache_{name}", start=start, stop=stop) for name in ("hits", "queries"))
    return math.nan if np.isnan(hits).all() else _share(float(np.nansum(hits)), float(np.nansum(queries)))


def _share(hits: float, queries: float) -> float:
    return hits / queries if queries > 0 else math.nan


def _totals(history: TickHistory, stop: int) -> Totals:
    def total(column: str) -> int:
        amount = history.total(column, stop=stop)
        return 0 if math.isnan(amount) else int(amount)

    return Totals(
        **{name: total(column) for name, column in _COUNTED.items()},
        cancelled=total("cancelled"),
        preemptions=history.total("preemptions", stop=stop),
        prefix_cache_hit_rate=_share(
            *(history.total(f"prefix_cache_{name}", stop=stop) for name in ("hits", "queries"))
        ),
    )


def _series(history: TickHistory, at: float, *, window: float, span: float, columns: int) -> StatsSeries:
    width = max(1, math.ceil(span / TICK_SECONDS / max(columns, 1)))
    bins = history.bins(max(0.0, at - span), until=at, width=width)
    window_ticks = round(window / TICK_SECONDS)
    first, last = (bins[0][0], bins[-1][1]) if bins else (0, 0)

    def each(column: str) -> list[FloatArray]:
        values = history.column(column, start=first, stop=last)
        return [values[low - first : high - first] for low, high in bins]

    def rate(column: str) -> FloatArray:
        return np.array([part.sum() / (width * TICK_SECONDS) for part in each(column)], dtype=np.float64)

    def newest(column: str) -> FloatArray:
        return np.array([part[-1] if part.size else math.nan for part in each(column)], dtype=np.float64)

    def percentiles(metric: str) -> FloatArray:
        rows = [history.percentiles(metric, start=max(0, high - window_ticks), stop=high) for _, high in bins]
        return np.array(rows, dtype=np.float64).reshape(-1, 3).T

    low_index = math.ceil(max(0.0, at - span) / TICK_SECONDS / width - 1e-9)
    return StatsSeries(
        times=np.asarray((low_index + 1 + np.arange(len(bins))) * width * TICK_SECONDS, dtype=np.float64),
        offered=rate("due"),
        sent=rate("sent"),
        completed=rate("ok"),
        output_tokens=rate("output_tokens"),
        prompt_tokens=rate("prompt_tokens"),
        engine_output_tokens=rate("engine_output_tokens"),
        preemptions=rate("preemptions"),
        **{name: newest(name) for name in ("in_flight", "queued", "kv_usage", "running", "waiting")},
        latencies={metric: percentiles(metric) for metric in LATENCIES},
        target=_target(newest("request_rate"), newest("paused")),
        target_concurrency=newest("max_concurrency"),
        smoothed={
            name: smoothed_rate(history, _COUNTED[name], bins=bins, width=width)
            for name in ("offered", "sent", "completed")
        },
        stages=np.array([_stage(history, high) for _, high in bins], dtype=np.int64),
    )


def _target(rate: FloatArray, paused: FloatArray) -> FloatArray:
    """The rate in force: 0 while paused, NaN where it is infinite."""
    return np.where(np.isfinite(rate), np.where(paused > 0, 0.0, rate), np.nan)


def _stage(history: TickHistory, stop: int) -> int:
    return int(history.value("stage", stop - 1)) if stop else -1
