"""A metric as it is declared, and its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class LiveMetricKind(StrEnum):
    """The types of OpenMetrics that are in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"
    """Facts as labels; the value is 1."""
    STATE_SET = "stateset"
    """A sample for each state, 1 for the present one and 0 for the others; the label has the name of the metric."""


_SUFFIXES = {LiveMetricKind.COUNTER: "_total", LiveMetricKind.INFO: "_info"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveMetric:
    """A metric with its name, unit, help and labels."""

    name: str
    """The name in a query, which ends with `_total` for a counter and `_info` for an info."""
    kind: LiveMetricKind
    help: str
    """One sentence."""
    labels: tuple[str, ...] = ()
    unit: str = ""
    """`seconds` or `ratio`, which the name ends with; empty for a number of something that the name says."""
    bounds: tuple[float, ...] = ()
    """The upper bounds of a histogram's buckets, ascending, without infinity."""
    states: tuple[str, ...] = ()
    """The states of a state set."""

    @property
    def family(self) -> str:
        """The name of the metric in OpenMetrics, without the suffix of its samples."""
        return self.name.removesuffix(_SUFFIXES.get(self.kind, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketCounts:
    """The value of a histogram."""

    counts: Sequence[int]
    """Cumulative counts by bound, and then of all values."""
    total: float
    """The sum of all values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSample:
    """One series of a metric, with its present value."""

    value: float | BucketCounts
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFamily:
    """A metric with all its series."""

    metric: LiveMetric
    samples: Sequence[MetricSample]


def state_set(metric: LiveMetric, state: str, labels: Mapping[str, str] | None = None) -> list[MetricSample]:
    """Return the samples of a state set: 1 for the present state, 0 for each other one."""
    return [
        MetricSample(value=int(each == state), labels={**(labels or {}), metric.name: each}) for each in metric.states
    ]
