"""Values of the engine page's metrics over periods between scrapes, as a pure function of the scrapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from servetop.analysis.exported.metric_spec import BOUND, RANK, REPLICA, MetricKind, MetricSpec
from servetop.analysis.exported.scrape_history import ScrapeHistory, SeriesName
from servetop.core.arrays import BoolArray, FloatArray

P50, P90, P99 = 0.5, 0.9, 0.99
_BLOCK = 500
"""Scrapes that are unpacked together."""
MOST_LABELS = 32
"""Values of a label that are shown for one metric, at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Periods:
    """Some periods, each between two scrapes. Arrays have one row per period and one column per series."""

    columns: Sequence[SeriesName]
    increases: FloatArray
    """Increases of all series as if they were counters; NaN if the series is unknown at the period's end."""
    newest: FloatArray
    """Values at the end of each period, or their mean over it."""
    seconds: FloatArray
    """Length of each period; NaN for one without a new scrape. Shape (periods,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExportedValue:
    """The values of a metric, or of one of the values of its label."""

    spec: MetricSpec
    source: str
    """The name of its series on the metrics page, as the engine spells it."""
    label: str = ""
    values: FloatArray
    """One value per period, NaN where nothing was counted; the median of a histogram. Shape (periods,)."""
    p90: FloatArray | None = None
    """The 90th percentiles of a histogram; None for other metrics."""
    first_bound: float = 0.0
    """The upper bound of a histogram's first bucket above 0: a quantile up to it is only known to be at most that."""
    buckets: FloatArray | None = None
    """Lower and upper bound of the bucket that contains both quantiles of a histogram, inf for the last one; NaN if
    there is no such bucket. Shape (periods, 2)."""


def increases(before: FloatArray, after: FloatArray, *, unread: BoolArray) -> FloatArray:
    """Return how much counters grew between scrapes; shape (periods, series).

    One that fell was reset to 0, and one that is new began at 0. `unread`: whether the scrape before each period could
    not be read, after which nothing is known; shape (periods,).
    """
    start = np.where(unread[:, np.newaxis], np.nan, np.nan_to_num(before))
    grown: FloatArray = np.where(after >= start, after - start, np.where(np.isnan(start), np.nan, after))
    return grown


def unread(values: FloatArray) -> BoolArray:
    """Return which scrapes could not be read, by the values of all series; shape (scrapes,)."""
    return np.asarray(np.isnan(values).all(axis=1))


def periods_between(history: ScrapeHistory, positions: Sequence[int]) -> Periods:
    """Return the periods between consecutive scrapes, by ascending position, of the series known at the last one.

    Equal positions are a period without a new scrape, where nothing is known.
    """
    width = history.known_columns(positions[-1])
    values, times = history.values(positions)[:, :width], history.times(positions)
    elapsed = times[1:] - times[:-1]
    seconds = np.where(elapsed > 0, elapsed, np.nan)
    return Periods(
        columns=history.columns[:width],
        increases=increases(values[:-1], values[1:], unread=unread(values[:-1])),
        newest=np.where(np.isnan(seconds)[:, np.newaxis], np.nan, values[1:]),
        seconds=seconds,
    )


def window_period(history: ScrapeHistory, start: float, end: float) -> Periods:
    """Return the period from the last scrape before `start`, or the first one, to the last one before `end`.

    There must be a scrape before `end`; its gauges count even if it is the only one.
    """
    last = history.up_to(end) - 1
    positions = [max(min(history.up_to(start) - 1, last), 0), last]
    period = periods_between(history, positions)
    return replace(period, newest=history.values(positions[1:])[:, : len(period.columns)])


def whole_period(history: ScrapeHistory, start: float) -> Periods:
    """Return the period from the last scrape before `start`, or the first one, to the last; resets do not count.

    `newest` is the mean of the scrapes.
    """
    last = len(history) - 1
    first = min(max(history.up_to(start) - 1, 0), last)
    width = history.known_columns(last)
    grown, total, known = np.zeros(width), np.zeros(width), np.zeros(width)
    for block in range(first, last, _BLOCK):
        positions = range(block, min(block + _BLOCK, last) + 1)
        each, counts = periods_between(history, positions), history.counts(positions)[1:, np.newaxis]
        part = slice(0, len(each.columns))
        grown[part] += np.nansum(each.increases, axis=0)
        total[part] += np.nansum(each.newest * counts, axis=0)
        known[part] += (~np.isnan(each.newest) * counts).sum(axis=0)
    mean = np.divide(total, known, out=np.full(width, np.nan), where=known > 0)
    times = history.times([first, last])
    return Periods(
        columns=history.columns[:width],
        increases=np.where(known > 0, grown, np.nan)[np.newaxis],
        newest=mean[np.newaxis],
        seconds=np.where(np.diff(times) > 0, np.diff(times), np.nan),
    )


def missing_metrics(specs: Sequence[MetricSpec], columns: Sequence[SeriesName]) -> list[MetricSpec]:
    """Return the metrics of which a series was not exported."""
    names = {column.name for column in columns}
    return [spec for spec in specs if not all(names.intersection(each) for each in spec.samples)]


def metric_values(specs: Sequence[MetricSpec], periods: Periods) -> list[ExportedValue]:
    """Return the values of all metrics whose series were exported, in the order of `specs`."""
    by_name: dict[str, list[int]] = {}
    for number, column in enumerate(periods.columns):
        by_name.setdefault(column.name, []).append(number)
    return [value for spec in specs for value in _values_of(spec, periods, by_name)]


def histogram_quantile(spec: MetricSpec, periods: Periods, share: float) -> FloatArray | None:
    """Return a quantile of a histogram (share 0 to 1) in each period, NaN for those without observations.

    It is interpolated within its bucket; shape (periods,). None if the histogram was not exported.
    """
    names = {column.name for column in periods.columns}
    source = next((name for name in spec.samples[0] if name in names), None)
    if source is None:
        return None
    own = [number for number, column in enumerate(periods.columns) if column.name == source]
    return _quantile_of_each(share, *_cumulative(periods, own))


def _values_of(spec: MetricSpec, periods: Periods, by_name: Mapping[str, list[int]]) -> list[ExportedValue]:
    found = [next((name for name in names if name in by_name), None) for names in spec.samples]
    sources = [name for name in found if name is not None]
    if len(sources) < len(found):
        return []
    own, others = by_name[sources[0]], [by_name[name] for name in sources[1:]]
    if spec.kind is MetricKind.IMBALANCE:
        imbalance = _imbalance(periods, own)
        return [] if imbalance is None else [ExportedValue(spec=spec, source=sources[0], values=imbalance)]
    labels = {"": own} if not spec.by else _grouped(periods.columns, own, spec.by)
    if spec.by == RANK and len(labels) < 2:
        return []
    return [
        _value(spec, periods, columns, others=others, source=sources[0], label=label)
        for label, columns in labels.items()
    ]


def _value(
    spec: MetricSpec, periods: Periods, own: list[int], *, others: list[list[int]], source: str, label: str
) -> ExportedValue:
    p90, first, buckets = None, 0.0, None
    match spec.kind:
        case MetricKind.RATE:
            values = _sum(periods.increases, own) / periods.seconds
        case MetricKind.GAUGE:
            values = _sum(periods.newest, own) / (len(own) if spec.averaged else 1)
        case MetricKind.QUANTILES:
            values, p90, first, buckets = _quantiles(periods, own)
        case MetricKind.P99:
            values = _quantile_of_each(P99, *_cumulative(periods, own))
        case _:
            values = _ratio(_sum(periods.increases, own), _sum(periods.increases, others[0])) + spec.plus
    return ExportedValue(
        spec=spec, source=_family(spec, source), label=label, values=values, p90=p90, first_bound=first, buckets=buckets
    )


def _family(spec: MetricSpec, source: str) -> str:
    """Return the name of a histogram instead of that of its buckets or sum."""
    histogram = spec.kind in (MetricKind.MEAN, MetricKind.QUANTILES, MetricKind.P99)
    return source.removesuffix("_bucket").removesuffix("_sum") if histogram else source


def _sum(table: FloatArray, columns: list[int]) -> FloatArray:
    """Sum some columns; NaN only where all of them are unknown."""
    part = table[:, columns]
    unknown = np.isnan(part)
    total: FloatArray = np.where(unknown.all(axis=1), np.nan, np.where(unknown, 0.0, part).sum(axis=1))
    return total


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    ratio: FloatArray = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return ratio


def _grouped(columns: Sequence[SeriesName], numbers: list[int], label: str) -> dict[str, list[int]]:
    """Return the columns of each value of a label; numbers come in their order, other values as on the page.

    The ranks of several servers are numbered `replica/rank`.
    """
    groups: dict[str, list[int]] = {}
    for number in numbers:
        value = columns[number].label(label) or ""
        replica = columns[number].label(REPLICA) if label == RANK else None
        groups.setdefault(value if replica is None else f"{replica}/{value}", []).append(number)
    if all(value.isdecimal() for value in groups):
        groups = {value: groups[value] for value in sorted(groups, key=int)}
    return dict(list(groups.items())[:MOST_LABELS])


def _imbalance(periods: Periods, own: list[int]) -> FloatArray | None:
    """Return the largest increase of a rank / the mean; None for a single rank."""
    ranks = [_sum(periods.increases, columns) for columns in _grouped(periods.columns, own, RANK).values()]
    if len(ranks) < 2:
        return None
    table = np.nan_to_num(np.stack(ranks))
    return _ratio(table.max(axis=0), table.mean(axis=0))


def _quantiles(periods: Periods, own: list[int]) -> tuple[FloatArray, FloatArray, float, FloatArray]:
    """Return p50 and p90 of each period from cumulative buckets, the first bound above 0, and the common buckets."""
    bounds, counts = _cumulative(periods, own)
    p50, p90 = (_quantile_of_each(share, bounds, counts) for share in (P50, P90))
    buckets = np.full((len(counts), 2), np.nan)
    for period in range(len(counts) if bounds.size else 0):
        buckets[period] = _common_bucket(bounds, counts[period])
    above = bounds[(bounds > 0) & np.isfinite(bounds)]
    return p50, p90, float(above[0]) if above.size else 0.0, buckets


def _cumulative(periods: Periods, own: list[int]) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of a histogram, and how many observations of each period are up to each of them."""
    groups = _grouped_by_bound(periods.columns, own)
    bounds = np.array(sorted(groups))
    if not bounds.size:
        return bounds, np.empty((periods.seconds.size, 0))
    columns = [groups[bound] for bound in bounds]
    if all(len(each) == 1 for each in columns):  # the same result with one operation for all bounds
        counts = periods.increases[:, [column for (column,) in columns]]
    else:
        counts = np.stack([_sum(periods.increases, each) for each in columns], axis=1)
    return bounds, np.maximum.accumulate(np.nan_to_num(counts), axis=1)


def _quantile_of_each(share: float, bounds: FloatArray, counts: FloatArray) -> FloatArray:
    """Return a quantile of each period, NaN for those without observations."""
    return np.array([_quantile(bounds, each, share) if bounds.size else math.nan for each in counts], dtype=np.float64)


def _common_bucket(bounds: FloatArray, cumulative: FloatArray) -> tuple[float, float]:
    """Return the bounds of the bucket that contains both quantiles; NaN if they are in different ones."""
    low, high = (int(np.searchsorted(cumulative, share * cumulative[-1])) for share in (P50, P90))
    if low != high or not cumulative[-1] > 0:
        return math.nan, math.nan
    return float(bounds[low - 1]) if low else min(0.0, float(bounds[0])), float(bounds[low])


def _grouped_by_bound(columns: Sequence[SeriesName], own: list[int]) -> dict[float, list[int]]:
    groups: dict[float, list[int]] = {}
    for number in own:
        try:
            bound = float(columns[number].label(BOUND) or "nan")
        except ValueError:
            continue
        if not math.isnan(bound):
            groups.setdefault(bound, []).append(number)
    return groups


def _quantile(bounds: FloatArray, cumulative: FloatArray, share: float) -> float:
    """Interpolate within the bucket that contains the quantile; in the last, infinite one its lower bound."""
    if not cumulative[-1] > 0:
        return math.nan
    rank = share * cumulative[-1]
    at = int(np.searchsorted(cumulative, rank))
    if math.isinf(bounds[at]):
        return float(bounds[at - 1]) if at else math.nan
    lower, before = (float(bounds[at - 1]), float(cumulative[at - 1])) if at else (min(0.0, float(bounds[0])), 0.0)
    within = (rank - before) / (cumulative[at] - before)
    return lower + (float(bounds[at]) - lower) * float(within)
