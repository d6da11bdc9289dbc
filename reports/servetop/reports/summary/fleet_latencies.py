"""Latencies of several watched servers together: the increases of their histograms' buckets are added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from servetop.analysis.exported.exported_summary import ExportedMetric, summary_of
from servetop.analysis.exported.histogram_mean import histogram_mean
from servetop.analysis.exported.metric_spec import BOUND, MetricKind, MetricSpec
from servetop.analysis.exported.metric_values import Periods, metric_values, whole_period
from servetop.analysis.exported.scrape_history import ScrapeHistory, SeriesName
from servetop.core.interfaces.run_source import EngineFacts
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.reports.summary.watch_rows import LATENCIES

_Counts = Mapping[SeriesName, float]


def fleet_latencies(
    servers: Iterable[tuple[EngineFacts | None, ScrapeHistory]],
) -> tuple[ExportedMetric, ...] | None:
    """Return p50, p90 and, if all sums are known, the mean of each latency over all servers; None if none exports one.

    A latency of which the servers have buckets with other bounds is left out, and so are all of different engines.
    """
    known = [(facts, series) for facts, series in servers if facts is not None and len(series)]
    engines = {facts.name for facts, _ in known}
    if len(engines) != 1:
        return None
    specs = [
        spec for spec in exported_metrics(known[0][0]) if spec.name in LATENCIES and spec.kind is MetricKind.QUANTILES
    ]
    counts = [_counts(series) for _, series in known]
    found = [each for spec in specs if _alike(spec, counts) for each in _merged(spec, counts)]
    return tuple(found) or None


def _counts(series: ScrapeHistory) -> _Counts:
    """Return how much each series of a server grew while it was watched."""
    period = whole_period(series, 0.0)
    return dict(zip(period.columns, period.increases[0].tolist(), strict=True))


def _alike(spec: MetricSpec, counts: Sequence[_Counts]) -> bool:
    """Whether all servers that have the histogram have the same buckets."""
    names = {name for series in spec.samples for name in series}
    bounds = [
        frozenset((column.name, column.label(BOUND)) for column in each if column.name in names) for each in counts
    ]
    return len(set(filter(None, bounds))) == 1


def _merged(spec: MetricSpec, counts: Sequence[_Counts]) -> list[ExportedMetric]:
    names = {name for series in spec.samples for name in series}
    sums: dict[SeriesName, float] = {}
    for each in counts:
        for column, grown in each.items():
            if column.name in names or column.name in spec.sums:
                sums[column] = sums.get(column, 0.0) + np.nan_to_num(grown)
    increases = np.array([list(sums.values())])
    together = Periods(columns=list(sums), increases=increases, newest=increases, seconds=np.ones(1))
    mean = histogram_mean(spec, together) if _all_have_sums(spec, counts) else None
    return [summary_of(value, mean=mean) for value in metric_values([spec], together)]


def _all_have_sums(spec: MetricSpec, counts: Sequence[_Counts]) -> bool:
    """Whether all servers that have the histogram have its sum; older recordings have none."""
    found = [{column.name for column in each} for each in counts]
    names = {name for series in spec.samples for name in series}
    return all(each.intersection(spec.sums) for each in found if each & names)
