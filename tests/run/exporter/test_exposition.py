"""The metrics as text of both formats, and which of them a scraper gets."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from servetop.run.exporter.exposition import exposition, prefers_openmetrics
from servetop.run.exporter.live_metric import (
    BucketCounts,
    LiveMetric,
    LiveMetricKind,
    MetricFamily,
    MetricSample,
    state_set,
)

COUNTER = LiveMetric(name="a_requests_total", kind=LiveMetricKind.COUNTER, help="Requests.")
SECONDS = LiveMetric(name="a_seconds", kind=LiveMetricKind.HISTOGRAM, help="Time.", unit="seconds", bounds=(0.5, 1.0))
INFO = LiveMetric(name="a_build_info", kind=LiveMetricKind.INFO, help="Build.", labels=("version",))
STATE = LiveMetric(
    name="a_state", kind=LiveMetricKind.STATE_SET, help="State.", labels=("a_state",), states=("on", "off")
)
FAMILIES = (
    MetricFamily(metric=COUNTER, samples=[MetricSample(value=3)]),
    MetricFamily(metric=SECONDS, samples=[MetricSample(value=BucketCounts(counts=[1, 2, 4], total=7.5))]),
    MetricFamily(metric=INFO, samples=[MetricSample(value=1, labels={"version": "1"})]),
    MetricFamily(metric=STATE, samples=state_set(STATE, "off")),
    MetricFamily(metric=LiveMetric(name="a_none", kind=LiveMetricKind.GAUGE, help="Nothing."), samples=[]),
)


def test_openmetrics_has_types_units_and_an_end() -> None:
    text = exposition(FAMILIES, openmetrics=True)
    families = {each.name: each for each in openmetrics(text)}  # type: ignore[no-untyped-call]
    assert {name: each.type for name, each in families.items()} == {
        "a_requests": "counter", "a_seconds": "histogram", "a_build": "info", "a_state": "stateset",
    }  # fmt: skip
    assert families["a_seconds"].unit == "seconds"
    assert [(each.labels.get("le"), each.value) for each in families["a_seconds"].samples] == [
        ("0.5", 1.0), ("1.0", 2.0), ("+Inf", 4.0), (None, 7.5), (None, 4.0),
    ]  # fmt: skip
    assert {each.labels["a_state"]: each.value for each in families["a_state"].samples} == {"on": 0.0, "off": 1.0}
    assert text.endswith("# EOF\n")


def test_the_format_of_prometheus_has_the_same_samples_and_only_its_own_types() -> None:
    text = exposition(FAMILIES, openmetrics=False)
    assert {each.type for each in plain(text)} == {"counter", "histogram", "gauge"}
    assert "# EOF" not in text
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert samples == [line for line in exposition(FAMILIES, openmetrics=True).splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=0.0.1", False),
        ("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        ("text/plain;version=0.0.4;q=0.9, application/openmetrics-text; version=1.0.0; q=0.5", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=high", False),
    ],
)
def test_a_scraper_gets_the_format_that_it_prefers(accept: str, wanted: bool) -> None:
    assert prefers_openmetrics(accept) is wanted
