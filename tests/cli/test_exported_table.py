"""The summary on the terminal has the engine's most telling metrics, and leaves out the others."""

from __future__ import annotations

import pytest

from servetop.analysis.exported.exported_summary import ExportedMetric
from servetop.cli.report.exported_table import _TELLING, exported_table, telling_metrics
from servetop.cli.tables import out_tables
from servetop.engines.metrics.vllm_exported import VLLM_EXPORTED


def metric(
    group: str, name: str, *, unit: str, value: float | None, p90: float | None = None, at_most: float | None = None
) -> ExportedMetric:
    return ExportedMetric(
        group=group, name=name, label=None, series="vllm:series", kind="rate", unit=unit, value=value, p90=p90,
        at_most=at_most,
    )  # fmt: skip


METRICS = (
    metric("Speculative decoding", "draft tokens accepted", unit="share", value=0.61),
    metric("Queue and scheduler", "time in the queue", unit="s", value=0.25, p90=4.0, at_most=0.3),
    metric("Queue and scheduler", "preemptions per request", unit="", value=0.0),
    metric("Compute, estimated", "model FLOP/s per GPU", unit="FLOP/s", value=None),
    metric("Request sizes", "prompt", unit="tok", value=100.0),
)


def test_known_metrics_other_than_0_are_shown_with_their_units(capsys: pytest.CaptureFixture[str]) -> None:
    out_tables(exported_table(telling_metrics(METRICS)))
    printed = capsys.readouterr().out
    assert [line.split() for line in printed.splitlines() if "vllm:series" in line] == [
        ["draft", "tokens", "accepted", "61.0", "%", "vllm:series"],
        ["time", "in", "the", "queue", "≤300", "ms", "/", "4.00", "s", "vllm:series"],
    ]


def test_each_telling_metric_is_in_vllms_table() -> None:
    names = {(spec.group, name.rstrip(":")) for spec in VLLM_EXPORTED for name in (spec.name, spec.peak_share)}
    assert set(_TELLING) <= names
