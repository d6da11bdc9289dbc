"""The percentiles that the text summary shows."""

from __future__ import annotations

import pytest

from servetop.cli.report.latency_table import latency_table
from servetop.cli.tables import out_tables
from tests.cli.summaries import requests

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
