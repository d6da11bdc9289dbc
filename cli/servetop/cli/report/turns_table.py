"""The turns of conversations as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group

from servetop.cli.tables import light_table, titled
from servetop.tui.drawing import formats

_MEASURED = ("mean_ttft_ms", "p50_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "mean_prompt_tokens")


def turns_table(turns: Sequence[Mapping[str, Any]]) -> Group:
    """One row a turn, from 1: requests, latencies in milliseconds, mean prompt, and how much of it was cached."""
    names = ("TTFT\nmean", "TTFT\np50", "TTFT\np99", "TPOT\nmean", "TPOT\np99", "prompt\ntokens", "cached")
    table = light_table("turn", "requests", "ok", *names)
    for turn in turns:
        table.add_row(
            str(turn["turn"]),
            formats.exact(turn["requests"]),
            formats.exact(turn["completed"]),
            *(formats.number(turn[key]) for key in _MEASURED),
            formats.percent(turn["cached_share"]),
        )
    return titled("Turns (latency in ms)", table)
