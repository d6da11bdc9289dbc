"""The tables of a summary: latencies, goodput, and the engine's most telling metrics."""

from __future__ import annotations

import pytest

from servetop.analysis.exported.exported_summary import ExportedMetric
from servetop.cli.report.report import print_summary
from servetop.cli.report.run_tables import _TELLING, exported_table, latency_table, telling_metrics
from servetop.cli.tables import out_tables
from servetop.engines.metrics.vllm_exported import VLLM_EXPORTED
from tests.cli.summaries import requests, run

USUAL = ("p50", "p90", "p95", "p99")


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


@pytest.mark.parametrize(
    ("requested", "columns"),
    [
        ((), ["mean", "p50", "p90", "p99"]),
        (("p99.9", "p75"), ["mean", "p50", "p75", "p90", "p95", "p99", "p99.9"]),
    ],
)
def test_percentiles_that_were_asked_for_are_columns(
    requested: tuple[str, ...], columns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out_tables(latency_table(requests(percentiles=(*USUAL, *requested))))
    assert columns in [line.split() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("objectives", "label"),
    [
        (None, "Goodput  "),
        (("ttft:500",), "Goodput, from sent (TTFT ≤ 500 ms)  "),
        (("ttft:500", "e2el:12000"), "Goodput, from sent (TTFT ≤ 500 ms, E2EL ≤ 12,000 ms)  "),
    ],
)
def test_goodput_states_its_objectives(
    objectives: tuple[str, ...] | None, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_summary(run(goodput=objectives, request_goodput=3.5), as_json=False)
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith(label) and "3.50 req/s" in line]


def test_the_table_says_that_ttft_counts_from_sent(capsys: pytest.CaptureFixture[str]) -> None:
    out_tables(latency_table(requests()))
    assert "TTFT as served" in capsys.readouterr().out


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
