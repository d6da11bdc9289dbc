"""Estimates of a metric from the slices of a stage, each with the influence of every slice on it.

The estimate minus the truth is about the mean of the influences (first-order expansion), so the error of any metric
is that of a mean of a dependent series. For a ratio of sums (a rate, a mean over requests) the influence is
(y - R x) / mean(x), for a percentile q_p it is (p - F(q_p)) / f(q_p), per slice. Sources: Hampel, "The influence curve
and its role in robust estimation", JASA 69 (1974); Cochran, "Sampling Techniques" (1977), section 6.3, for ratios;
Woodruff, "Confidence intervals for medians and other position measures", JASA 47 (1952), for the interval of a
percentile from that of the distribution function. What the arrivals add to the error is in `arrived_load`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from servetop.analysis.comparison.arrived_load import arrival_error, correlation_time
from servetop.analysis.comparison.compared_metrics import COST_METRIC, ComparedMetric, Family
from servetop.analysis.comparison.slices import SlicedStage
from servetop.analysis.cost.hourly_price import MILLION, SECONDS_PER_HOUR
from servetop.analysis.statistics.batch_means import StandardError, standard_error
from servetop.analysis.statistics.student_t import quantile
from servetop.core.arrays import FloatArray
from servetop.core.histogram import LogHistogram, bucket_value
from servetop.core.units import MS_PER_S

CONFIDENCE = 0.95
"""The two-sided confidence of every interval."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """A metric of one stage of one start, in the unit of the metric."""

    value: float
    influence: FloatArray
    """The influence of each slice; shape (slices,)."""
    error: StandardError
    """The standard error of the mean of the influences."""
    low_error: float
    """Standard error towards lower values; differs from `high_error` for percentiles. Infinite if unknown."""
    high_error: float
    count: int
    """Requests, tokens or scrapes behind the estimate."""
    shortage: float = 1.0
    """For a percentile whose error is unknown: how many times as much data bounds it."""


_MORE_THAN_ENOUGH = 1.5


class _Quantiles(Protocol):
    """A sample from which any percentile can be read."""

    def at(self, share: float) -> float:
        """Return the value below which a share of the sample lies; infinite above 1."""
        ...


def estimate(stage: SlicedStage, metric: ComparedMetric) -> Estimate | None:
    """Estimate a metric; None if it was not measured."""
    if metric.latency == "itl":
        return _gap_estimate(stage, metric)
    if metric.latency:
        return _latency_estimate(stage, metric)
    parts = _ratio_parts(stage, metric.key)
    if parts is None:
        return None
    if metric.family in (Family.THROUGHPUT, Family.COST):
        return _at_least(_ratio(*parts, count=stage.chosen.size), arrival_error(stage, _amounts(stage, metric)))
    return _ratio(*parts, count=stage.chosen.size, memory=_memory(stage))


def _memory(stage: SlicedStage) -> float:
    """For how many slices the number of requests in the engine, and so all that depends on it, is correlated."""
    return correlation_time(stage.sample) / float(stage.seconds.mean())


def _amounts(stage: SlicedStage, metric: ComparedMetric) -> FloatArray:
    """Return what each request adds to a throughput, or to what is paid for, wherever its time lies."""
    sample, chosen = stage.sample, stage.chosen
    if metric.key == "output_throughput":
        return sample.output_tokens[chosen]
    if metric.key == COST_METRIC.key:
        return (sample.prompt_tokens + sample.output_tokens)[chosen]
    counted = sample.good if metric.key == "request_goodput" and sample.good is not None else sample.ok
    return counted[chosen].astype(np.float64)


def _at_least(found: Estimate | None, arrivals: StandardError) -> Estimate | None:
    """Return the estimate of a rate, which varies at least as much as what arrived; `arrivals` is a relative error."""
    if found is None or not arrivals.value * found.value > found.error.value:
        return found
    error = StandardError(arrivals.value * found.value, arrivals.df)
    return replace(found, error=error, low_error=error.value, high_error=error.value)


def _ratio_parts(stage: SlicedStage, key: str) -> tuple[FloatArray, FloatArray] | None:
    """Return the numerator and denominator of a metric by slice."""
    sample, counters = stage.sample, stage.sample.counters
    amounts = {name: counter.between(stage.edges) for name, counter in counters.items()}
    seconds = stage.seconds
    requests = np.bincount(stage.slice_of, minlength=stage.count).astype(np.float64)
    if key == "request_goodput" and sample.good is not None:
        return stage.counts(sample.good[stage.chosen]), seconds
    if key == "request_throughput":
        return sample.completions(stage.edges), seconds
    above, below = {
        "output_throughput": ("output_tokens", seconds),
        "preemptions_per_request": ("preemptions", requests),
        "mean_kv_usage": ("kv_usage", seconds),
        "joules_per_output_token": ("joules", amounts.get("output_tokens")),
    }.get(key, ("", None))
    if key == COST_METRIC.key and sample.price_per_hour is not None and "tokens" in amounts:
        return seconds * sample.price_per_hour / SECONDS_PER_HOUR, amounts["tokens"] / MILLION
    if below is None or above not in amounts or np.isnan(amounts[above]).any():
        return None
    return amounts[above], below


def _ratio(above: FloatArray, below: FloatArray, *, count: int, memory: float = 0.0) -> Estimate | None:
    total = float(below.sum())
    if not total > 0:
        return None
    value = float(above.sum()) / total
    influence = (above - value * below) / (total / below.size)
    error = standard_error(influence, correlation_time=memory)
    return Estimate(
        value=value, influence=influence, error=error, low_error=error.value, high_error=error.value, count=count
    )


def _latency_estimate(stage: SlicedStage, metric: ComparedMetric) -> Estimate | None:
    values = stage.sample.latencies[metric.latency][stage.chosen] * MS_PER_S
    known = ~np.isnan(values)
    count = int(known.sum())
    if not count:
        return None
    counts = stage.counts(known)
    if metric.percentile is None:
        return _ratio(stage.sums(values), counts, count=count, memory=_memory(stage))
    sample = _Sorted(np.sort(values[known]))
    share = metric.percentile / 100
    below = stage.counts(known & (values <= sample.at(share)))
    return _percentile(sample, share, below=below, counts=counts, memory=_memory(stage))


def _gap_estimate(stage: SlicedStage, metric: ComparedMetric) -> Estimate | None:
    gaps = stage.sample.gaps
    if gaps is None:
        return None
    bounds = np.searchsorted(gaps.at, stage.edges)
    merged = [
        LogHistogram.merged(gaps.histograms[first:stop])
        for first, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    counts = np.array([each.count for each in merged], dtype=np.float64)
    if not counts.any():
        return None
    if metric.percentile is None:
        sums = np.array([each.total for each in merged]) * MS_PER_S
        return _ratio(sums, counts, count=int(counts.sum()), memory=_memory(stage))
    sample, share = _Bucketed.of(LogHistogram.merged(merged)), metric.percentile / 100
    below = np.array([sample.below(each, share) for each in merged])
    return _percentile(sample, share, below=below, counts=counts, memory=_memory(stage))


def _percentile(
    sample: _Quantiles, share: float, *, below: FloatArray, counts: FloatArray, memory: float
) -> Estimate | None:
    """Return the estimate of a percentile from the number of values up to it, and of all values, in each slice."""
    reached = float(below.sum() / counts.sum())
    shares = (below - reached * counts) / counts.mean()
    error = standard_error(shares, correlation_time=memory)
    value, factor = sample.at(share), quantile(0.5 + CONFIDENCE / 2, error.df)
    width = factor * error.value
    low, high = sample.at(max(share - width, 0.0)), sample.at(share + width)
    low_error, high_error = (value - low) / factor, (high - value) / factor
    slope = (low_error + high_error) / 2 / error.value if error.value > 0 else 0.0
    return Estimate(
        value=value,
        influence=-shares * (slope if math.isfinite(slope) else 0.0),
        error=StandardError(error.value * slope, error.df),
        low_error=low_error,
        high_error=high_error,
        count=int(counts.sum()),
        shortage=1.0 if math.isfinite(high_error) else _MORE_THAN_ENOUGH * max(width / (1 - share), 1.0) ** 2,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Sorted:
    values: FloatArray

    def at(self, share: float) -> float:
        if share > 1 - 0.5 / self.values.size:
            return math.inf
        return float(np.quantile(self.values, share))


@dataclass(frozen=True, slots=True, eq=False)
class _Bucketed:
    """Percentiles of a histogram, interpolated within a bucket, in milliseconds."""

    histogram: LogHistogram
    shares: FloatArray
    """Share of the values up to each bucket."""

    @classmethod
    def of(cls, histogram: LogHistogram) -> _Bucketed:
        return cls(histogram, np.cumsum(histogram.counts) / histogram.count)

    def below(self, other: LogHistogram, share: float) -> float:
        """The values of another histogram up to this one's percentile, which divides the bucket that it lies in."""
        place = self._place(share)
        bucket = self.histogram.buckets[place]
        counts = other.counts[other.buckets < bucket], other.counts[other.buckets == bucket]
        return float(counts[0].sum()) + self._part(share, place) * float(counts[1].sum())

    def at(self, share: float) -> float:
        if share > 1 - 0.5 / self.histogram.count:
            return math.inf
        place = self._place(share)
        part = self._part(share, place)
        number = int(self.histogram.buckets[place])
        width = bucket_value(1) / bucket_value(0)
        return float(bucket_value(number) * width ** (part - 0.5) * MS_PER_S)

    def _part(self, share: float, place: int) -> float:
        """Return the part of the bucket at a place that lies below the percentile."""
        before = float(self.shares[place - 1]) if place else 0.0
        return (share - before) / (float(self.shares[place]) - before)

    def _place(self, share: float) -> int:
        return min(int(np.searchsorted(self.shares, share)), self.shares.size - 1)
