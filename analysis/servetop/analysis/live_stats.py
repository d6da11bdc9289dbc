"""The statistics that panels show at one time of a run, as a pure function of the ticks up to that time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from servetop.analysis.goodput import Attainment, attainment, share_within
from servetop.analysis.gpu_summary import joules_per_token, newest_gpus
from servetop.analysis.series.page_rates import (
    LONGEST_UNREAD,
    interval_and_reading,
    page_span,
    watched_stale_after,
)
from servetop.analysis.series.stats_series import (
    CHARTED,
    COUNTED,
    FELT_OF_OBJECTIVE,
    FELT_SECONDS,
    FELT_SHARE,
    SHOWN,
    StatsSeries,
    no_series,
    stats_series,
)
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.live_trust import live_trust
from servetop.analysis.trust.trust import Trust
from servetop.analysis.ttft_breakdown import TtftBreakdown, ttft_breakdown
from servetop.core.arrays import FloatArray
from servetop.core.events import EngineSample, GpuSample
from servetop.core.histogram import LogHistogram
from servetop.core.tick import TICK_SECONDS, LoadGauges, whole_ticks


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
    engine_failed_share: float = math.nan
    """Fraction, 0..1, of the requests ended in the window that failed, by the engine's counters; NaN also if none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts since the start of the run."""

    offered: int = 0
    sent: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    preemptions: float = math.nan
    output_tokens: int = 0
    prompt_tokens: int = 0
    prefix_cache_hit_rate: float = math.nan
    """Fraction of the tokens queried in this run, excluding the engine's counts from before the run."""


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
    """Seconds between the newest samples: long if the source has a slow period of its own; 0 with fewer than two."""
    read_at: float = math.nan
    """End of the newest tick with a sample: before `at`, while the source does not respond; NaN if unknown."""
    gpus: tuple[GpuSample, ...] = ()
    """The newest sample of each GPU, at most two seconds old."""
    joules_per_token: float = math.nan
    """GPU energy per output token over the sliding window."""
    attainment: Attainment = Attainment()
    within: Mapping[str, float] = field(default_factory=dict)
    """Share of the window's values within each objective by its metric, 0..1; TTFT counts from due."""
    felt_seconds: float = FELT_SECONDS
    """Seconds in the client's queue that matter to TTFT."""
    trust: Trust = Trust()
    ttft: TtftBreakdown = TtftBreakdown()
    series: StatsSeries

    @property
    def is_watched_now(self) -> bool:
        """Whether the newest sample of a watched server describes it now, by the age that its source's samples have."""
        sample = self.engine
        if sample is None or not self.at - sample.scrape_end <= watched_stale_after(self.sample_interval) + 1e-9:
            return False
        return self.at - (sample.scrape_end if math.isnan(self.read_at) else self.read_at) <= LONGEST_UNREAD + 1e-9

    @property
    def waits_in_client(self) -> bool:
        """Whether TTFT from due exceeds TTFT from sent clearly anywhere on the time axis.

        Clearly is more than FELT_SHARE, and FELT_SECONDS or FELT_OF_OBJECTIVE of the objective.
        """
        felt, served = (self.series.latencies[name] for name in ("ttft_due", "ttft"))
        return bool(((felt > served * (1 + FELT_SHARE)) & (felt - served > self.felt_seconds)).any())


def live_stats(
    history: TickHistory,
    at: float,
    *,
    window: float = 10.0,
    span: float = 120.0,
    columns: int = 120,
    objectives: Mapping[str, float] | None = None,
) -> LiveStats:
    """Return the statistics at `at`: over the window, totals, and series of at most `columns` bins over `span`.

    The window ends with the last whole tick; `objectives` are limits in seconds by metric.
    """
    stop, start = history.up_to(at), history.first_from(whole_ticks(at) - window)
    series = stats_series(history, at, window=window, span=span, columns=columns)
    if stop == 0:
        return LiveStats(at=at, window=window, span=span, series=series)
    interval = interval_and_reading(history, stop)
    rates, seconds = _windowed_rates(history, start, stop, window=window)
    return LiveStats(
        at=at,
        window=seconds,
        span=span,
        load=history.ticks[stop - 1].client.gauges,
        rates=rates,
        totals=_totals(history, stop),
        latencies={name: _percentiles(history, name, start, stop) for name in SHOWN},
        events_unsized=_events_unsized(history, start, stop),
        engine=_newest_sample(history, stop),
        sample_interval=interval[0],
        read_at=interval[1],
        gpus=newest_gpus(history, stop),
        joules_per_token=joules_per_token(history, start, stop),
        attainment=attainment(history, start, stop) if objectives else Attainment(),
        within=_within(history, objectives or {}, start, stop),
        felt_seconds=min(FELT_SECONDS, FELT_OF_OBJECTIVE * (objectives or {}).get("ttft", math.inf)),
        trust=live_trust(history, start, stop),
        ttft=ttft_breakdown(history, start, stop),
        series=series,
    )


def engine_stats(history: TickHistory, at: float, *, window: float = 10.0, span: float, columns: int) -> LiveStats:
    """Return only the series without latencies, and the parts of TTFT: less work, for charts of the engine alone."""
    stop, start = history.up_to(at), history.first_from(whole_ticks(at) - window)
    series = stats_series(history, at, window=window, span=span, columns=columns, latencies=())
    parts = ttft_breakdown(history, start, stop) if stop else TtftBreakdown()
    return LiveStats(at=at, window=window, span=span, ttft=parts, series=series)


def watched_stats(history: TickHistory, at: float, *, window: float = 10.0) -> LiveStats:
    """Return what the verdict of a watched server needs: rates and the newest sample, no latencies and no series."""
    stop, start = history.up_to(at), history.first_from(at - window)
    if stop == 0:
        return LiveStats(at=at, window=window, span=0.0, series=no_series())
    interval, read_at = interval_and_reading(history, stop)
    rates, seconds = _windowed_rates(history, start, stop, window=window)
    return LiveStats(
        at=at,
        window=seconds,
        span=0.0,
        rates=rates,
        engine=_newest_sample(history, stop),
        sample_interval=interval,
        read_at=read_at,
        series=no_series(),
    )


def _within(history: TickHistory, objectives: Mapping[str, float], start: int, stop: int) -> dict[str, float]:
    return {
        metric: share_within(_histogram_of(history, metric, start, stop), limit) for metric, limit in objectives.items()
    }


def _percentiles(history: TickHistory, name: str, start: int, stop: int) -> Percentiles:
    p50, p90, p99 = history.percentiles(name, start=start, stop=stop)
    return Percentiles(p50=p50, p90=p90, p99=p99)


def _histogram_of(history: TickHistory, metric: str, start: int, stop: int) -> LogHistogram:
    """Return the values that an objective's metric is judged by: without reasoning, TTFOT is TTFT."""
    found = history.histogram(CHARTED.get(metric, metric), start=start, stop=stop)
    return _histogram_of(history, "ttft", start, stop) if metric == "ttfot" and not found.buckets.size else found


def _events_unsized(history: TickHistory, start: int, stop: int) -> bool:
    clients = [tick.client for tick in history.ticks[start:stop]]
    gaps = sum(client.chunks - client.ttft.count for client in clients)
    return gaps > 0 and not any(client.itl.buckets.size for client in clients)


def _newest_sample(history: TickHistory, stop: int) -> EngineSample | None:
    sampled = history.last_known("scrape_end", stop=stop)
    return None if sampled is None else history.ticks[sampled].engine


def _rates(history: TickHistory, start: int, stop: int) -> Rates:
    seconds = (stop - start) * TICK_SECONDS
    if seconds <= 0:
        return Rates()

    def rate(column: str) -> float:
        return _rate(history.column(column, start=start, stop=stop), seconds)

    return Rates(
        **{name: rate(column) for name, column in COUNTED.items()},
        **_engine_rates(history, start, stop, seconds),
    )


def _windowed_rates(history: TickHistory, start: int, stop: int, *, window: float) -> tuple[Rates, float]:
    """Return the rates and the seconds that they are of: a watched engine's are between its pages, and of no client."""
    if not history.watched:
        return _rates(history, start, stop), window
    pages = page_span(history, stop, window=window)
    if pages is None:
        return Rates(), window
    return Rates(**_engine_rates(history, pages.start, pages.stop, pages.seconds)), max(window, pages.seconds)


def _engine_rates(history: TickHistory, start: int, stop: int, seconds: float) -> dict[str, float]:
    """Return the rates of the engine's counters over `seconds`, by their names in `Rates`."""
    counted = ("engine_output_tokens", "preemptions")
    rates = {name: _rate(history.column(name, start=start, stop=stop), seconds) for name in counted}
    failed, ended = (history.column(f"engine_{name}", start=start, stop=stop) for name in ("failed", "ended"))
    share = math.nan if np.isnan(failed).all() else _share(float(np.nansum(failed)), float(np.nansum(ended)))
    return {**rates, "prefix_cache_hit_rate": _hit_rate(history, start, stop), "engine_failed_share": share}


def _rate(counts: FloatArray, seconds: float) -> float:
    """Return the mean per second of a counter's increases; NaN if none is known."""
    known = counts[~np.isnan(counts)]
    return float(known.sum()) / seconds if known.size else math.nan


def _hit_rate(history: TickHistory, start: int, stop: int) -> float:
    hits, queries = (history.column(f"prefix_cache_{name}", start=start, stop=stop) for name in ("hits", "queries"))
    return math.nan if np.isnan(hits).all() else _share(float(np.nansum(hits)), float(np.nansum(queries)))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


def _totals(history: TickHistory, stop: int) -> Totals:
    def total(column: str) -> int:
        amount = history.total(column, stop=stop)
        return 0 if math.isnan(amount) else int(amount)

    return Totals(
        **{name: total(column) for name, column in COUNTED.items()},
        cancelled=total("cancelled"),
        preemptions=history.total("preemptions", stop=stop),
        prefix_cache_hit_rate=_share(
            *(history.total(f"prefix_cache_{name}", stop=stop) for name in ("hits", "queries"))
        ),
    )
