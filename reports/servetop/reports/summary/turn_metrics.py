"""Summaries by turn of a conversation, whose growing history affects prompts, latencies and prefix cache hits."""

from __future__ import annotations

import numpy as np

from servetop.analysis.columns.latencies import end_to_end_latencies, times_per_output_token, times_to_first_token
from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.statistics.percentiles import Distribution
from servetop.analysis.summary.request_metrics import finite, no_itl_reason
from servetop.analysis.summary.summary_types import TurnSummary
from servetop.core.arrays import BoolArray
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
    first = times_to_first_token(requests.sent[ok], requests.first_token_at[ok])
    e2el = end_to_end_latencies(requests.sent[ok], requests.done_at[ok])
    later_tokens = requests.output_tokens[ok].astype(np.float64) - requests.first_tokens[ok]
    reason = no_itl_reason(requests.sized[ok])
    later = np.empty(0) if reason else times_per_output_token(first, e2el, later_tokens)
    ttft, tpot = Distribution.of(first), Distribution.of(later)
    prompts, cached = requests.prompt_tokens[ok].astype(np.float64), requests.others["cached_tokens"][ok]
    known = ~np.isnan(cached)
    share = cached[known].sum() / max(1.0, prompts[known].sum()) if known.any() else np.nan
    return TurnSummary(
        turn=int(turn),
        requests=int(in_turn.sum()),
        completed=int(ok.sum()),
        mean_ttft_ms=_ms(ttft.mean),
        p50_ttft_ms=_ms(ttft.percentile(50)),
        p99_ttft_ms=_ms(ttft.percentile(99)),
        mean_tpot_ms=_ms(tpot.mean),
        p50_tpot_ms=_ms(tpot.percentile(50)),
        p99_tpot_ms=_ms(tpot.percentile(99)),
        tpot_reason=reason,
        mean_prompt_tokens=finite(prompts.mean()) if prompts.size else None,
        cached_share=finite(share),
    )


def _ms(seconds: float) -> float | None:
    return finite(seconds * MS_PER_S)
