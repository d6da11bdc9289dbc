"""Encodes metrics as a request of OTLP 1.x in its JSON form: `ExportMetricsServiceRequest`.

Integers of 64 bits are decimal strings there, as in all JSON of Protocol Buffers. Names, labels and bounds are those of
`--prometheus-port`, so that a query finds the same series however they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from servetop.core.units import NS_PER_S
from servetop.run.exporter.live_metric import BucketCounts, LiveMetric, LiveMetricKind, MetricFamily, MetricSample

_CUMULATIVE = 2
"""AGGREGATION_TEMPORALITY_CUMULATIVE: counts since the start of the process."""
_UNITS = {"seconds": "s", "ratio": "1", "": "1"}
"""UCUM's name of a unit."""


def otlp_request(
    families: Iterable[MetricFamily], *, resource: Mapping[str, str], version: str, began_at: float, now: float
) -> bytes:
    """Return the JSON of all metrics that have a sample; times are Unix times in seconds."""
    times = {"startTimeUnixNano": _nanoseconds(began_at), "timeUnixNano": _nanoseconds(now)}
    metrics = [_metric(family, times) for family in families if family.samples]
    scope = {"scope": {"name": "servetop", "version": version}, "metrics": metrics}
    return orjson.dumps(
        {"resourceMetrics": [{"resource": {"attributes": _attributes(resource)}, "scopeMetrics": [scope]}]}
    )


def _metric(family: MetricFamily, times: Mapping[str, str]) -> dict[str, Any]:
    metric = family.metric
    points = [*_points(metric, family.samples, times)]
    data: dict[str, Any] = {"dataPoints": points}
    head = {"name": metric.name, "description": metric.help, "unit": _UNITS[metric.unit]}
    match metric.kind:
        case LiveMetricKind.COUNTER:
            return {**head, "sum": {**data, "aggregationTemporality": _CUMULATIVE, "isMonotonic": True}}
        case LiveMetricKind.HISTOGRAM:
            return {**head, "histogram": {**data, "aggregationTemporality": _CUMULATIVE}}
        case _:
            return {**head, "gauge": data}


def _points(metric: LiveMetric, samples: Iterable[MetricSample], times: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for sample in samples:
        point: dict[str, Any] = {**times, "attributes": _attributes(sample.labels)}
        if isinstance(sample.value, BucketCounts):
            below = (0, *sample.value.counts)
            each = [count - before for before, count in zip(below, sample.value.counts, strict=False)]
            point |= {
                "count": str(sample.value.counts[-1]),
                "sum": sample.value.total,
                "bucketCounts": [str(count) for count in each],
                "explicitBounds": list(metric.bounds),
            }
        else:
            point["asDouble"] = float(sample.value)
        yield point


def _attributes(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": text}} for name, text in labels.items()]


def _nanoseconds(seconds: float) -> str:
    return str(round(seconds * NS_PER_S))
