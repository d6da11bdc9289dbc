"""Short constructors of metrics for the tables of the engine page."""

from __future__ import annotations

from dataclasses import replace

from servetop.analysis.exported.metric_spec import MetricKind, MetricSpec, Unit


def rate_of(group: str, name: str, *series: str, by: str = "", unit: Unit = Unit.NUMBER) -> MetricSpec:
    """Return a counter's increase per second."""
    return MetricSpec(group=group, name=name, kind=MetricKind.RATE, series=series, by=by, unit=unit)


def ratio_of(group: str, name: str, series: str, of: str, *, by: str = "", unit: Unit = Unit.SHARE) -> MetricSpec:
    """Return one counter's increase over another's."""
    return MetricSpec(group=group, name=name, kind=MetricKind.RATIO, series=(series,), of=(of,), by=by, unit=unit)


def older(spec: MetricSpec, before: str, after: str) -> MetricSpec:
    """Return the same metric with the names of older versions as well, in which `before` was spelled `after`."""
    return replace(
        spec,
        series=(*spec.series, *(name.replace(before, after) for name in spec.series)),
        of=(*spec.of, *(name.replace(before, after) for name in spec.of)),
    )


def mean_of(group: str, name: str, *series: str, unit: Unit = Unit.TOKENS) -> MetricSpec:
    """Return the mean of a histogram's observations."""
    return MetricSpec(group=group, name=name, kind=MetricKind.MEAN, series=series, unit=unit)


def quantiles_of(group: str, name: str, *series: str, unit: Unit = Unit.SECONDS) -> MetricSpec:
    """Return the median and the 90th percentile of a histogram's observations."""
    return MetricSpec(group=group, name=name, kind=MetricKind.QUANTILES, series=series, unit=unit)


def per_gpu(spec: MetricSpec, share: str) -> MetricSpec:
    """Return the same metric, which also has a share of the GPU's peak."""
    return replace(spec, peak_share=share)


def gauge_of(group: str, name: str, *series: str, by: str = "", unit: Unit = Unit.NUMBER) -> MetricSpec:
    """Return a gauge's newest value."""
    return MetricSpec(group=group, name=name, kind=MetricKind.GAUGE, series=series, by=by, unit=unit)


def imbalance_of(group: str, name: str, *series: str) -> MetricSpec:
    """Return the busiest rank's share of a counter, relative to the mean."""
    return MetricSpec(group=group, name=name, kind=MetricKind.IMBALANCE, series=series, unit=Unit.TIMES)
