"""The thresholds of a watch, judged from its recording: which server broke which, and since when."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.trailing import trailing_all
from servetop.analysis.engine_gauges import kv_usages
from servetop.analysis.exported.metric_spec import MetricKind
from servetop.analysis.exported.metric_values import histogram_quantile, periods_between
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.fleet.failed_requests import failed_share
from servetop.analysis.fleet.watch_thresholds import (
    ERROR_RATE,
    GAUGES,
    LATENCIES,
    QUANTILES,
    RATES,
    ThresholdResult,
    WatchThreshold,
    judge,
    parse_watch_threshold,
)
from servetop.analysis.series.page_rates import page_rates, watched_stale_after
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.errors import ExitCode
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.replica_watches import replica_records

WINDOW = 10.0
"""Seconds over which a rate or a quantile is computed."""
_TICKS = round(WINDOW / TICK_SECONDS)


def checked_watch(reader: RecordingReader, end: RunEnd) -> RunEnd:
    """Return the end of a watch by its thresholds: 99 if a server broke one, else 98 if one could not be decided."""
    config = reader.header.config
    if config.watch is None or not config.thresholds or end.exit_code != ExitCode.OK:
        return end
    thresholds = [parse_watch_threshold(text) for text in config.thresholds]
    record = recorded_run(reader, end=end)
    judged = judged_servers(reader, thresholds, hold=config.watch.hold, record=record, named=True)
    found = [each for _, _, each in judged]
    if broken := [each.broken for each in found if each.broken]:
        return RunEnd(at=end.at, exit_code=int(ExitCode.THRESHOLDS), reason="; ".join(broken))
    if undecided := [each.undecided for each in found if each.undecided]:
        return RunEnd(at=end.at, exit_code=int(ExitCode.CANNOT_TELL), reason="; ".join(undecided))
    return end


def judged_servers(
    reader: RecordingReader,
    thresholds: Sequence[WatchThreshold],
    *,
    hold: float,
    record: RunRecord | None = None,
    named: bool = False,
) -> Iterator[tuple[str, WatchThreshold, ThresholdResult]]:
    """Yield server (empty for one that is watched alone), threshold and judgement, which has the name if `named`.

    `record` is what was read of the watch before.
    """
    record = record or recorded_run(reader)
    servers = list(replica_records(reader, record))
    if not servers:
        series = ScrapeHistory()
        series.extend(reader.engine_series())
        servers = [("", record, series)]
    for name, each, series in servers:
        written = each.history.column("scrape_end")
        pages = np.unique(written[~np.isnan(written)]).size
        for threshold in thresholds:
            values, step = _values(threshold.metric, each.history, each.header.engine, series)
            who = name if named else ""
            yield name, threshold, judge(threshold, values, step=step, hold=hold, server=who, pages=pages)


def _values(
    metric: str, history: TickHistory, facts: EngineFacts | None, series: ScrapeHistory
) -> tuple[FloatArray, float]:
    """Return the values of a metric from second 0 on, and the seconds from one to the next."""
    if metric == "kv_usage":
        return _kv(history, facts), TICK_SECONDS
    if metric in GAUGES:
        return history.column(metric), TICK_SECONDS
    if metric in RATES:
        return _rate(history, RATES[metric]), TICK_SECONDS
    seconds = history.end_of(-1) if len(history) else 0.0
    if metric == ERROR_RATE:
        return _error_rate(series, seconds=seconds), WINDOW
    name, _, quantile = metric.partition("_")
    return _quantiles(facts, series, LATENCIES[name], QUANTILES[quantile], seconds=seconds), WINDOW


def _kv(history: TickHistory, facts: EngineFacts | None) -> FloatArray:
    total = math.nan if facts is None else facts.kv_blocks_total or math.nan
    used = history.column("kv_blocks_used")
    return kv_usages(history.column("kv_usage"), used, np.full(used.shape, total))


def _rate(history: TickHistory, counter: str) -> FloatArray:
    """Return increases per second over the last ten seconds, or since the page before, if that is longer ago.

    NaN where the server was not read in all of the ten seconds.
    """
    rates = page_rates(history, counter, start=0, stop=len(history), window=WINDOW)
    read = trailing_all(~np.isnan(history.column("scrape_end")), _TICKS)
    return np.where(read, rates, np.nan)


def _quantiles(
    facts: EngineFacts | None, series: ScrapeHistory, name: str, share: float, *, seconds: float
) -> FloatArray:
    """Return a quantile for each whole ten seconds; NaN where no request was counted.

    Each is that from one metrics page to another: where none arrived in ten seconds, that from the page before them to
    the one after them, if the source has pages that rarely.
    """
    specs = [] if facts is None else [spec for spec in exported_metrics(facts) if spec.name == name]
    edges, positions = _edges(series, seconds)
    unknown = np.full(max(len(edges) - 1, 0), np.nan)
    if len(positions) < 2:
        return unknown
    periods = periods_between(series, positions)
    found = [histogram_quantile(each, periods, share) for each in specs if each.kind is MetricKind.QUANTILES]
    values = next((each for each in found if each is not None), None)
    if values is None:
        return unknown
    period = _periods_of(edges, series, positions)
    return np.where(period >= 0, values[period], np.nan)


def _error_rate(series: ScrapeHistory, *, seconds: float) -> FloatArray:
    """Return the share of requests that failed in each whole ten seconds, as `_quantiles` does a quantile."""
    edges, positions = _edges(series, seconds)
    if len(positions) < 2:
        return np.full(max(len(edges) - 1, 0), np.nan)
    period = _periods_of(edges, series, positions)
    return np.where(period >= 0, failed_share(periods_between(series, positions))[period], np.nan)


def _edges(series: ScrapeHistory, seconds: float) -> tuple[FloatArray, Sequence[int]]:
    """Return the edges of each whole ten seconds, and the positions of the scrapes at them, each once."""
    edges = np.arange(math.floor(seconds / WINDOW) + 1, dtype=np.float64) * WINDOW
    return edges, sorted({max(series.up_to(float(edge)) - 1, 0) for edge in edges})


def _periods_of(edges: FloatArray, series: ScrapeHistory, positions: Sequence[int]) -> IntArray:
    """Return the period between two of some scrapes, by its number, that stands for the time between two edges.

    It is the last one that ends there, or the one that begins before and ends after. -1: none does, or the source
    had its pages more often, so that the server did not respond then.
    """
    times, usual = series.times(positions), np.diff(series.times(range(len(series))))
    newest = np.searchsorted(times, edges[1:], side="right") - 1
    ends_there = (newest >= 0) & (times[newest] > edges[:-1])
    around = np.append(np.diff(times) <= watched_stale_after(float(np.median(usual))), False)
    surrounding = np.where((newest >= 0) & around[newest], newest, -1)
    return np.asarray(np.where(ends_there, newest - 1, surrounding))
