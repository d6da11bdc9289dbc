"""The turns of conversations as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from servetop.analysis.summary.summary_types import TurnSummary
from servetop.core.text import formats
from servetop.reports.tables import light_table, titled


def turns_table(turns: Sequence[TurnSummary]) -> Group:
    """One row for each turn, from 1: requests, latencies in milliseconds, mean prompt, and its cached share."""
    names = ("TTFT\nmean", "TTFT\np50", "TTFT\np99", "TPOT\nmean", "TPOT\np99", "prompt\ntokens", "cached")
    table = light_table("turn", "requests", "ok", *names)
    for turn in turns:
        ttfts, tpots = (turn.mean_ttft_ms, turn.p50_ttft_ms, turn.p99_ttft_ms), (turn.mean_tpot_ms, turn.p99_tpot_ms)
        table.add_row(
            str(turn.turn),
            formats.exact(turn.requests),
            formats.exact(turn.completed),
            *map(formats.in_full, (*ttfts, *tpots, turn.mean_prompt_tokens)),
            formats.percent(turn.cached_share),
        )
    return titled("Turns (latency in ms)", table)
