"""The definition of a metric of the engine page: the series it is computed from, how, and in which unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from servetop.core.config import from_data
from servetop.core.errors import UsageError

MOST_SPECS = 500
"""Metrics that are read from a recording's header, at most."""

RANK = "engine"
"""The label that numbers an engine's data-parallel ranks."""
REPLICA = "replica"
"""The label that numbers several servers; servetop adds it."""
BOUND = "le"
"""The label with the upper bound of a histogram's bucket."""
PER_TOKEN = ("inter_token_latency_seconds", ":time_per_output_token_seconds")
"""Endings of the histograms with an observation for each output token, of which sums are kept for exact means."""


class MetricKind(StrEnum):
    """How a metric is computed from the increases of its series over a period, or from their newest values."""

    RATE = "rate"
    """Increase of a counter per second."""
    RATIO = "ratio"
    """Increase of one counter / increase of another."""
    MEAN = "mean"
    """Increase of a histogram's sum / increase of its count."""
    QUANTILES = "quantiles"
    """p50 and p90 of a histogram's observations in the period, interpolated within buckets as by Prometheus."""
    P99 = "p99"
    """p99 of a histogram's observations in the period, interpolated in the same way."""
    GAUGE = "gauge"
    """The newest value."""
    IMBALANCE = "imbalance"
    """Increase of the busiest rank's counter / mean increase of all ranks; 1 is even, NaN for one rank."""


class Unit(StrEnum):
    """The unit of a metric, which selects how it is shown."""

    SHARE = "share"
    """0 to 1."""
    SECONDS = "s"
    TOKENS = "tok"
    TOKENS_PER_SECOND = "tok/s"
    REQUESTS = "req"
    REQUESTS_PER_SECOND = "req/s"
    PER_SECOND = "/s"
    BYTES = "B"
    BYTES_PER_SECOND = "B/s"
    FLOPS = "FLOP/s"
    TIMES = "×"
    NUMBER = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One metric; each of its series is given by its names in different versions, of which the first found is used."""

    group: str
    """Heading under which it is shown."""
    name: str
    """A few plain words."""
    unit: Unit = Unit.NUMBER
    kind: MetricKind
    series: tuple[str, ...]
    """Names without `_total`, `_sum`, `_count` or `_bucket`."""
    of: tuple[str, ...] = ()
    """The counter that a ratio divides by."""
    by: str = ""
    """A label: one value for each of its values."""
    plus: float = 0.0
    """Added to a ratio."""
    peak_share: str = ""
    """The name of its share of one GPU's peak, for an estimate in FLOP/s or bytes/s per GPU; empty: it has none."""

    def __post_init__(self) -> None:
        if not self.series or (self.kind is MetricKind.RATIO and not self.of):
            raise ValueError(f"metric {self.name!r}: it needs the name of a series, and a ratio that of two")

    @property
    def samples(self) -> tuple[tuple[str, ...], ...]:
        """The names on the metrics page of each series that the metric needs, by preference."""
        match self.kind:
            case MetricKind.MEAN:
                return (_ending(self.series, "_sum"), _ending(self.series, "_count"))
            case MetricKind.QUANTILES | MetricKind.P99:
                return (_ending(self.series, "_bucket"),)
            case MetricKind.GAUGE:
                return (self.series,)
            case _:
                return tuple(_ending(names, "_total", "") for names in (self.series, self.of) if names)

    @property
    def sums(self) -> tuple[str, ...]:
        """The names on the metrics page of the sums of a histogram of tokens, which are kept for exact means."""
        return _ending((name for name in self.series if name.endswith(PER_TOKEN)), "_sum")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that distinguish its series; rows that differ only in other labels are added up."""
        if self.kind in (MetricKind.QUANTILES, MetricKind.P99):
            return (BOUND,)
        if self.averaged or self.kind is MetricKind.IMBALANCE:
            return tuple({self.by or RANK: None, RANK: None})
        return (self.by,) if self.by else ()

    @property
    def averaged(self) -> bool:
        """Whether several rows are averaged instead of added: those of a gauge that is a share."""
        return self.kind is MetricKind.GAUGE and self.unit is Unit.SHARE


def _ending(names: Iterable[str], *endings: str) -> tuple[str, ...]:
    return tuple(f"{name}{ending}" for name in names for ending in endings)


def specs_from(rows: Iterable[Mapping[str, Any]]) -> tuple[MetricSpec, ...]:
    """Decode the metrics in a recording's header; one that is damaged, or of a newer version, is omitted."""
    found = []
    for row in islice(rows, MOST_SPECS):
        with suppress(UsageError, TypeError, ValueError):
            found.append(from_data(MetricSpec, row, strict=False, where="metric"))
    return tuple(found)


def wanted_labels(specs: Iterable[MetricSpec]) -> Mapping[str, tuple[str, ...]]:
    """Return all names on the metrics page that some metrics need, with the labels to keep of each."""
    wanted: dict[str, dict[str, None]] = {}
    for spec in specs:
        if spec.kind is MetricKind.QUANTILES:
            wanted.update({name: {} for name in spec.sums if name not in wanted})
        for position, names in enumerate(spec.samples):
            labels = () if position and spec.kind is MetricKind.RATIO else spec.labels
            for name in names:
                wanted.setdefault(name, {}).update(dict.fromkeys(labels))
    return {name: tuple(labels) for name, labels in wanted.items()}
