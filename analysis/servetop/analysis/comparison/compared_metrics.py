"""The metrics that a comparison judges: keys of the summary, families, directions, and the smallest relevant change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Family(StrEnum):
    """Metrics of one aspect of performance; error rates hold for each family."""

    THROUGHPUT = "throughput"
    TTFT = "TTFT"
    TPOT = "TPOT"
    ITL = "ITL"
    E2EL = "E2EL"
    ENGINE = "engine"
    ENERGY = "energy"
    COST = "cost"


class Scale(StrEnum):
    """How a difference is expressed."""

    RELATIVE = "relative"
    """A fraction of the value of A."""
    ABSOLUTE = "absolute"
    """In the metric's own unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    """One metric of a comparison."""

    key: str
    """The key in the summary's JSON, such as `p99_ttft_ms`."""
    title: str
    unit: str
    family: Family
    higher_is_better: bool
    margin: float
    """Smallest difference to look for, in `scale`: found with 95 % power once the cost of an answer is paid."""
    scale: Scale = Scale.RELATIVE
    latency: str = ""
    """Latency of requests (`ttft`, `tpot`, `e2el`) or tokens (`itl`); empty for other metrics."""
    percentile: float | None = None
    """0 to 100; None for the mean."""
    floor: float = 0.0
    """Smallest relevant difference in the metric's own unit."""


MEAN_MARGIN, MIDDLE_MARGIN, TAIL_MARGIN = 0.02, 0.05, 0.10
"""Margins of throughput and means, of p50 and p90, and of p99: the tail of the same run varies most."""
_POINTS = 0.02
_FLOORS_MS = {"ttft": 0.5, "tpot": 0.05, "itl": 0.05, "e2el": 1.0}
"""Differences below these are within what the clocks of client and network resolve."""
_LATENCIES = (("ttft", Family.TTFT), ("tpot", Family.TPOT), ("itl", Family.ITL), ("e2el", Family.E2EL))
_STATISTICS = (
    ("mean", None, MEAN_MARGIN),
    ("p50", 50.0, MIDDLE_MARGIN),
    ("p90", 90.0, MIDDLE_MARGIN),
    ("p99", 99.0, TAIL_MARGIN),
)


def _throughput(key: str, title: str, unit: str) -> ComparedMetric:
    return ComparedMetric(
        key=key, title=title, unit=unit, family=Family.THROUGHPUT, higher_is_better=True, margin=MEAN_MARGIN
    )


METRICS: tuple[ComparedMetric, ...] = (
    _throughput("output_throughput", "output tokens", "tok/s"),
    _throughput("request_throughput", "requests", "req/s"),
    _throughput("request_goodput", "goodput", "req/s"),
    *(
        ComparedMetric(
            key=f"{statistic}_{latency}_ms",
            title=f"{family.value} {statistic}",
            unit="ms",
            family=family,
            higher_is_better=False,
            margin=margin,
            latency=latency,
            percentile=percentile,
            floor=_FLOORS_MS[latency],
        )
        for latency, family in _LATENCIES
        for statistic, percentile, margin in _STATISTICS
    ),
    ComparedMetric(
        key="preemptions_per_request",
        title="preemptions",
        unit="/req",
        family=Family.ENGINE,
        higher_is_better=False,
        margin=_POINTS,
        scale=Scale.ABSOLUTE,
    ),
    ComparedMetric(
        key="mean_kv_usage",
        title="KV usage",
        unit="share",
        family=Family.ENGINE,
        higher_is_better=False,
        margin=_POINTS,
        scale=Scale.ABSOLUTE,
    ),
    ComparedMetric(
        key="joules_per_output_token",
        title="energy",
        unit="J/tok",
        family=Family.ENERGY,
        higher_is_better=False,
        margin=MEAN_MARGIN,
    ),
)


COST_METRIC = ComparedMetric(
    key="cost_per_million_tokens",
    title="cost",
    unit="/M tok",
    family=Family.COST,
    higher_is_better=False,
    margin=MEAN_MARGIN,
)
"""Of runs with a price: the cost of input and output tokens alike."""


def metric_named(key: str) -> ComparedMetric | None:
    """Return the metric with this key; `median_…` means `p50_…`; None if there is none."""
    spelled = key.replace("median_", "p50_", 1) if key.startswith("median_") else key
    return next((each for each in (*METRICS, COST_METRIC) if each.key == spelled), None)
