"""Several servers as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from servetop.analysis.summary.summary_types import ReplicaSummary
from servetop.core.text import formats
from servetop.reports.tables import cell, light_table, titled


def replicas_table(replicas: Sequence[ReplicaSummary]) -> Group:
    """One row for each server: its requests, unknown behind a load balancer, and the metrics it exported."""
    names = ("ok", "fail", "tok/s", "TTFT\np50", "TTFT\np99")
    table = light_table("", *names, "tokens\nout", "peak\nrun", "peak\nwait", "peak\nKV", "preempt.")
    for each in replicas:
        requests, server = each.requests, each.server
        table.add_row(
            cell(each.url.removeprefix("http://")),
            formats.exact(None if requests is None else requests.completed),
            formats.exact(None if requests is None else requests.failed),
            formats.number(None if requests is None else requests.output_throughput),
            *(formats.in_full(None if requests is None else requests.latency("ttft", q)) for q in ("p50", "p99")),
            *map(formats.exact, (server.generation_tokens, server.max_running, server.max_waiting)),
            formats.percent(server.max_kv_usage),
            formats.exact(server.preemptions),
        )
    return titled("Replicas (latency in ms)", table)
