"""The metrics as text: in the format of Prometheus 0.0.4, or as OpenMetrics 1.0."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from servetop.core.text.exposition_text import help_line, number_text, quoted_label
from servetop.run.exporter.live_metric import BucketCounts, LiveMetric, LiveMetricKind, MetricFamily, MetricSample

OPENMETRICS = "application/openmetrics-text"
CONTENT_TYPES: Mapping[bool, str] = {
    False: "text/plain; version=0.0.4; charset=utf-8",
    True: f"{OPENMETRICS}; version=1.0.0; charset=utf-8",
}
"""The content type, by whether the text is OpenMetrics."""
_PLAIN_TYPES = {LiveMetricKind.INFO: "gauge", LiveMetricKind.STATE_SET: "gauge"}
"""The types that the older format has instead."""


def exposition(families: Iterable[MetricFamily], *, openmetrics: bool) -> str:
    """Return the text of all metrics that have a sample."""
    lines = [line for family in families if family.samples for line in _family(family, openmetrics=openmetrics)]
    return "".join(lines) + ("# EOF\n" if openmetrics else "")


def prefers_openmetrics(accept: str) -> bool:
    """Whether the Accept header of a request prefers OpenMetrics 1.0 to the text format of Prometheus."""
    wanted = plain = 0.0
    for part in accept.lower().split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        values = dict(each.partition("=")[::2] for each in parameters)
        quality = _quality(values.get("q", "1"))
        if kind == OPENMETRICS and values.get("version", "1.0.0") == "1.0.0":
            wanted = max(wanted, quality)
        elif kind in ("text/plain", "text/*", "*/*"):
            plain = max(plain, quality)
    return wanted > 0 and wanted >= plain


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _family(family: MetricFamily, *, openmetrics: bool) -> Iterator[str]:
    metric = family.metric
    yield _head(metric, openmetrics)
    for sample in family.samples:
        if isinstance(sample.value, BucketCounts):
            yield from _histogram(metric, sample, sample.value)
        else:
            yield f"{metric.name}{_labels(sample.labels)} {number_text(sample.value)}\n"


def _histogram(metric: LiveMetric, sample: MetricSample, value: BucketCounts) -> Iterator[str]:
    labels = _labels(sample.labels)
    yield "".join(map("{}{}\n".format, _buckets(metric, labels), value.counts))
    yield f"{metric.name}_sum{labels} {number_text(value.total)}\n"
    yield f"{metric.name}_count{labels} {value.counts[-1]}\n"


@functools.cache
def _head(metric: LiveMetric, openmetrics: bool) -> str:
    name = metric.family if openmetrics else metric.name
    kind = metric.kind.value if openmetrics else _PLAIN_TYPES.get(metric.kind, metric.kind.value)
    unit = f"# UNIT {name} {metric.unit}\n" if openmetrics and metric.unit else ""
    return f"# HELP {name} {help_line(metric.help)}\n# TYPE {name} {kind}\n{unit}"


@functools.lru_cache(maxsize=256)
def _buckets(metric: LiveMetric, labels: str) -> Sequence[str]:
    """Return the line of each bucket up to its count."""
    start = f"{metric.name}_bucket{{{labels[1:-1]}{',' if labels else ''}le="
    bounds = (*map(float, metric.bounds), math.inf)
    return [f"{start}{quoted_label(number_text(bound))}}} " for bound in bounds]


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{name}={quoted_label(text)}" for name, text in labels.items()) + "}" if labels else ""
