"""Summaries by turn of a conversation, whose growing history affects prompts, latencies and prefix cache hits."""

from __future__ import annotations

import numpy as np

from servetop.analysis.columns.latencies import end_to_end_latencies, times_per_output_token, times_to_first_token
from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.statistics.percentiles import Distribution
from servetop.analysis.summary.request_metrics import finite, no_itl_reason
from servetop.analysis.summary.summary_types import TurnSummary
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import RequestStatus
from servetop.core.units import MS_PER_S

TURN_COLUMNS = ("turn", "cached_tokens")
"""Optional columns from which turns are summarised."""


def turn_summaries(requests: RequestColumns) -> tuple[TurnSummary, ...]:
    """Return one summary per turn, from 1, with latencies and prompts of its successful requests."""
    turns = requests.others["turn"]
    return tuple(_turn_summary(requests, turn, turns == turn) for turn in np.unique(turns[turns > 0]))


def _turn_summary(requests: RequestColumns, turn: float, in_turn: BoolArray) -> TurnSummary:
    ok = in_turn & requests.with_status(RequestStatus.OK)
    ttft = times_to_first_token(requests.sent[ok], requests.first_token_at[ok])
    e2el = end_to_end_latencies(requests.sent[ok], requests.done_at[ok])
    later_tokens = requests.output_tokens[ok].astype(np.float64) - requests.first_tokens[ok]
    reason = no_itl_reason(requests.sized[ok])
    prompts, cached = requests.prompt_tokens[ok].astype(np.float64), requests.others["cached_tokens"][ok]
    known = ~np.isnan(cached)
    share = cached[known].sum() / max(1.0, prompts[known].sum()) if known.any() else np.nan
    return TurnSummary(
        turn=int(turn),
        requests=int(in_turn.sum()),
        completed=int(ok.sum()),
        **_statistics("ttft", ttft),
        **_statistics("tpot", np.empty(0) if reason else times_per_output_token(ttft, e2el, later_tokens)),
        tpot_reason=reason,
        mean_prompt_tokens=finite(prompts.mean()) if prompts.size else None,
        cached_share=finite(share),
    )


def _statistics(name: str, seconds: FloatArray) -> dict[str, float | None]:
    distribution = Distribution.of(seconds)
    values = {"mean": distribution.mean, "p50": distribution.percentile(50), "p99": distribution.percentile(99)}
    return {f"{statistic}_{name}_ms": finite(value * MS_PER_S) for statistic, value in values.items()}
