"""Several servers as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group

from servetop.cli.tables import cell, light_table, titled
from servetop.tui.drawing import formats


def replicas_table(replicas: Sequence[Mapping[str, Any]]) -> Group:
    """One row a server: its requests and their latency, unknown behind a front door, and what it told itself."""
    names = ("ok", "fail", "tok/s", "TTFT\np50", "TTFT\np99")
    table = light_table("", *names, "tokens\nout", "most\nrun", "most\nwait", "KV\nmost", "preempt.")
    for each in replicas:
        keys = ("output_throughput", "p50_ttft_ms", "p99_ttft_ms")
        server = each["server"]
        table.add_row(
            cell(each["url"].removeprefix("http://")),
            *(formats.exact(each.get(key)) for key in ("completed", "failed")),
            *(formats.number(each.get(key)) for key in keys),
            *(formats.exact(server[key]) for key in ("generation_tokens", "max_running", "max_waiting")),
            formats.percent(server["max_kv_usage"]),
            formats.exact(server["preemptions"]),
        )
    return titled("Replicas (latency in ms)", table)
