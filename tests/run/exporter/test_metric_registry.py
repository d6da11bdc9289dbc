"""The declared metrics keep the rules of Prometheus that `promtool check metrics` has."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import pytest

from servetop.core.tick import HISTOGRAMS, ClientTick, LoadGauges
from servetop.run.exporter import metric_registry as registry
from servetop.run.exporter.live_metric import LiveMetric, LiveMetricKind
from servetop.run.exporter.metric_registry import METRICS

RESERVED = ("_count", "_sum", "_bucket", "_created")
ABBREVIATED = {"s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "bytes_s", "h", "d", "m", "pct"}
NOT_BASE = {"milliseconds", "microseconds", "minutes", "hours", "days", "percent", "kilobytes", "megabytes"}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_labels_and_help_are_those_of_the_rules(metric: LiveMetric) -> None:
    for name in (metric.name, *metric.labels):
        assert re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*", name), name
    words = set(metric.name.split("_"))
    assert not words & (ABBREVIATED | NOT_BASE)
    assert not words & {"counter", "gauge", "histogram", "summary"}
    assert metric.name.endswith("_total") == (metric.kind is LiveMetricKind.COUNTER)
    assert metric.name.endswith("_info") == (metric.kind is LiveMetricKind.INFO)
    assert not metric.name.endswith(RESERVED)
    assert "le" not in metric.labels
    assert metric.help.endswith(".")
    assert metric.help[0].isupper() or metric.help[0].isdigit()
    if metric.unit:
        assert metric.family.endswith(f"_{metric.unit}")


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_only_histograms_have_bounds_and_only_state_sets_states(metric: LiveMetric) -> None:
    assert bool(metric.bounds) == (metric.kind is LiveMetricKind.HISTOGRAM)
    assert list(metric.bounds) == sorted(set(metric.bounds))
    assert bool(metric.states) == (metric.kind is LiveMetricKind.STATE_SET)
    assert not metric.states or metric.labels[-1] == metric.name


def test_no_two_metrics_have_one_name_in_either_format() -> None:
    assert max(Counter(metric.name for metric in METRICS).values()) == 1
    assert max(Counter(metric.family for metric in METRICS).values()) == 1


def test_the_bounds_of_the_conventions_are_kept() -> None:
    assert registry.OPERATION_BOUNDS[:14] == (
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    )  # fmt: skip
    assert registry.TOKEN_BOUNDS == (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
    server = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
    assert set(server) <= set(registry.PER_TOKEN_BOUNDS)


def test_metrics_that_are_fields_of_a_tick_name_one() -> None:
    assert set(registry.LOAD_GAUGES.values()) <= {field.name for field in dataclasses.fields(LoadGauges)}
    assert all(hasattr(ClientTick(index=0), name) for name in registry.TICK_COUNTERS.values())
    assert set(registry.TICK_HISTOGRAMS.values()) <= set(HISTOGRAMS)
