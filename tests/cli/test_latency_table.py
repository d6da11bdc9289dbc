"""The latencies and the goodput that the text summary shows."""

from __future__ import annotations

import pytest

from servetop.cli.report.latency_table import latency_table
from servetop.cli.report.report import print_summary
from servetop.cli.tables import out_tables
from tests.cli.summaries import requests, run

USUAL = ("p50", "p90", "p95", "p99")


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
