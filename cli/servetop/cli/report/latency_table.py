"""The summary's table of latencies, with the percentiles of the run."""

from __future__ import annotations

from rich.console import Group

from servetop.analysis.summary.summary_types import RequestSummary
from servetop.core.text import formats
from servetop.reports.tables import light_table, titled

_USUAL = ("p50", "p90", "p95", "p99")


def latency_table(requests: RequestSummary) -> Group:
    """TTFT as served (from sent), TPOT, ITL and E2EL down, mean and percentiles across, in milliseconds."""
    columns = ("mean", *_percentiles(requests))
    table = light_table("", *columns)
    for metric, name in (("ttft", "TTFT as served"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2el", "E2EL")):
        table.add_row(name, *(formats.in_full(requests.latency(metric, statistic)) for statistic in columns))
    return titled("Latency, ms", table)


def _percentiles(requests: RequestSummary) -> list[str]:
    """The columns of percentiles: p50, p90 and p99, or all if the run has others."""
    named = sorted(requests.latencies["ttft"].percentiles, key=lambda name: float(name.removeprefix("p")))
    return named if len(named) > len(_USUAL) else [name for name in named if name != "p95"]
