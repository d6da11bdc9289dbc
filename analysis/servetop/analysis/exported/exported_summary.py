"""The metrics of the engine page over a whole run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from servetop.analysis.exported.gpu_peaks import GpuPeak, with_peak_shares
from servetop.analysis.exported.histogram_mean import histogram_mean
from servetop.analysis.exported.metric_spec import MetricSpec
from servetop.analysis.exported.metric_values import ExportedValue, metric_values, whole_period
from servetop.analysis.exported.scrape_history import ScrapeHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedMetric:
    """A metric of the engine that no other part has, from the start of the load to the last scrape."""

    group: str
    name: str
    label: str | None
    """The label's value, for one of several."""
    series: str
    """The name on the engine's metrics page."""
    kind: str
    unit: str
    value: float | None
    """A rate, ratio or mean over that time, the median of a histogram, or the mean of a gauge."""
    p90: float | None = field(metadata={"omitted": True})
    """The 90th percentile of a histogram."""
    at_most: float | None = field(default=None, metadata={"omitted": True})
    """The upper bound of a histogram's first bucket, if the median is in it: only that is known of such a quantile."""
    above: float | None = field(default=None, metadata={"omitted": True})
    """The lower bound of the bucket that contains both quantiles; `value` and `p90` are interpolated within it."""
    up_to: float | None = field(default=None, metadata={"omitted": True})
    """The upper bound of that bucket; None for the last one, which has none."""
    mean: float | None = field(default=None, metadata={"omitted": True})
    """The mean of a histogram of which the sum is kept, exact."""

    def bucket(self, value: float) -> tuple[float, float | None] | None:
        """Return the bounds of the bucket that is all that is known of a quantile; None if it is known better.

        That is the first bucket of its histogram, or the one that contains both quantiles.
        """
        if self.at_most is not None and value <= self.at_most:
            return 0.0, self.at_most
        return None if self.above is None else (self.above, self.up_to)


def exported_summary(
    specs: Sequence[MetricSpec], history: ScrapeHistory, *, start: float, peak: GpuPeak | None = None
) -> tuple[ExportedMetric, ...] | None:
    """Return the exported metrics from `start` (seconds) on, with shares of the GPU's peak; None without a scrape."""
    if not len(history):
        return None
    period = whole_period(history, start)
    values = with_peak_shares(metric_values(specs, period), peak)
    return tuple(
        summary_of(value, mean=None if value.label else histogram_mean(value.spec, period)) for value in values
    )


def summary_of(value: ExportedValue, *, mean: float | None = None) -> ExportedMetric:
    """Return the first of the values of a metric as it is in summaries, with the `mean` of a histogram."""
    above, up_to = (math.nan, math.nan) if value.buckets is None else value.buckets[0]
    return ExportedMetric(
        group=value.spec.group,
        name=value.spec.name.rstrip(":"),
        label=value.label or None,
        series=value.source,
        kind=value.spec.kind.value,
        unit=value.spec.unit.value,
        value=_known(value.values[0]),
        p90=None if value.p90 is None else _known(value.p90[0]),
        at_most=value.first_bound if 0 < value.values[0] <= value.first_bound else None,
        above=_known(above),
        up_to=None if math.isinf(up_to) else _known(up_to),
        mean=mean,
    )


def _known(number: float) -> float | None:
    return None if math.isnan(number) else float(number)
