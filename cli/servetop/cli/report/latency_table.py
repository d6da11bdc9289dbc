"""The summary's table of latencies, with the percentiles that were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group

from servetop.cli.tables import light_table, titled
from servetop.tui.drawing import formats

_USUAL = ("p50", "p90", "p95", "p99")


def latency_table(summary: Mapping[str, Any]) -> Group:
    """TTFT, TPOT, ITL and E2EL down, mean and percentiles across, in milliseconds."""
    columns = ("mean", *_percentiles(summary))
    table = light_table("", *columns)
    for metric, name in (("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2el", "E2EL")):
        table.add_row(name, *(formats.number(summary.get(f"{statistic}_{metric}_ms")) for statistic in columns))
    return titled("Latency, ms", table)


def _percentiles(summary: Mapping[str, Any]) -> list[str]:
    """The columns of percentiles: the usual three, or, where others were asked for, all that there are."""
    found = [key.removesuffix("_ttft_ms") for key in summary if key.startswith("p") and key.endswith("_ttft_ms")]
    named = sorted((name for name in found if name[1:].replace(".", "").isdigit()), key=lambda name: float(name[1:]))
    return named if len(named) > len(_USUAL) else [name for name in named if name != "p95"]
