"""The metrics of a run in OTLP's JSON: equal to the page of `--prometheus-port`, read by the rules of the standard."""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import Any

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.run.exporter.otlp.otlp_json import otlp_request
from servetop.run.exporter.run_metrics import RunIdentity, RunMetrics
from tests.run.exporter.recorded import Samples, samples_of, transactions

IDENTITY = RunIdentity(recording="night", version="1.2.3", began_at=1700000000.5)
Points = list[dict[str, Any]]


def labels_of(attributes: Points) -> dict[str, str]:
    return {each["key"]: each["value"]["stringValue"] for each in attributes}


def bound_text(bound: float) -> str:
    return "+Inf" if bound == float("inf") else f"{bound}"


def samples_in(metrics: Points) -> Samples:
    """The samples of a page of Prometheus, from the data points of a request."""
    found: Samples = {}
    for metric in metrics:
        (kind,) = metric.keys() & {"sum", "gauge", "histogram"}
        for point in metric[kind]["dataPoints"]:
            labels = labels_of(point["attributes"])
            if kind != "histogram":
                found[metric["name"], tuple(sorted(labels.items()))] = point["asDouble"]
                continue
            assert len(point["bucketCounts"]) == len(point["explicitBounds"]) + 1
            counts = itertools.accumulate(int(text) for text in point["bucketCounts"])
            for bound, count in zip((*point["explicitBounds"], float("inf")), counts, strict=True):
                key = tuple(sorted({**labels, "le": bound_text(bound)}.items()))
                found[f"{metric['name']}_bucket", key] = count
            found[f"{metric['name']}_sum", tuple(sorted(labels.items()))] = point["sum"]
            found[f"{metric['name']}_count", tuple(sorted(labels.items()))] = int(point["count"])
    return found


def test_a_request_has_every_sample_of_the_page() -> None:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        metrics = RunMetrics(reader.header.config, IDENTITY)
        assert reader.header.engine is not None
        metrics.set_engine(reader.header.engine)
        for transaction in transactions(reader):
            metrics.take(transaction)
    body = otlp_request(
        metrics.families(),
        resource={"service.name": "servetop"},
        version="1.2.3",
        began_at=1700000000.5,
        now=1700000060,
    )
    (resource,) = json.loads(body)["resourceMetrics"]
    assert labels_of(resource["resource"]["attributes"]) == {"service.name": "servetop"}
    (scope,) = resource["scopeMetrics"]
    assert scope["scope"] == {"name": "servetop", "version": "1.2.3"}
    page = samples_of(metrics.text(openmetrics=True))
    assert samples_in(scope["metrics"]) == page
    points = [
        (metric["name"], kind, metric[kind], point)
        for metric in scope["metrics"]
        for kind in ("sum", "gauge", "histogram")
        for point in metric.get(kind, {}).get("dataPoints", ())
    ]
    assert {(each["startTimeUnixNano"], each["timeUnixNano"]) for *_, each in points} == {
        ("1700000000500000000", "1700000060000000000")
    }
    assert {(kind, data["aggregationTemporality"]) for _, kind, data, _ in points if kind != "gauge"} == {
        ("sum", 2),
        ("histogram", 2),
    }
    assert all(data["isMonotonic"] for _, kind, data, _ in points if kind == "sum")
    assert {name.endswith("_total") for name, kind, *_ in points if kind == "sum"} == {True}
