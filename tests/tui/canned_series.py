"""The engine page's series of a canned run: a vLLM with speculative decoding and prefix caching, once a second."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import Tick

_PER_SECOND = 4
_BOUNDS = (("0.3", 0.5), ("0.8", 0.7), ("2.5", 0.9), ("+Inf", 1.0))
"""Upper bounds of queue times, and the share of requests up to each."""
_POSITIONS = (0.82, 0.61, 0.4)
"""Accepted drafts by position."""


def series(ticks: Sequence[Tick]) -> list[SeriesScrape]:
    """Counters that follow the engine samples of the ticks; the names are in the first scrape."""
    scrapes: list[SeriesScrape] = []
    ended = tokens = 0.0
    for tick in ticks:
        ended, tokens = ended + tick.client.ok, tokens + tick.client.output_tokens
        if tick.engine is not None and tick.index % _PER_SECOND == _PER_SECOND - 1:
            values = _values(ended, tokens, waiting=tick.engine.waiting or 0.0)
            names = None if scrapes else "\n".join(values)
            scrapes.append(SeriesScrape(at=tick.end - 0.1, names=names, numbers=pack_numbers(values.values())))
    return scrapes


def _values(ended: float, tokens: float, *, waiting: float) -> dict[str, float]:
    drafts = tokens / (1 + sum(_POSITIONS))
    return {
        "vllm:prefix_cache_queries_total": ended * 250,
        "vllm:prefix_cache_hits_total": ended * 100,
        "vllm:num_requests_waiting_by_reason{reason=capacity}": waiting,
        "vllm:num_requests_waiting_by_reason{reason=deferred}": 0.0,
        **{f"vllm:request_queue_time_seconds_bucket{{le={bound}}}": ended * share for bound, share in _BOUNDS},
        "vllm:request_success_total{finished_reason=length}": ended,
        "vllm:request_success_total{finished_reason=abort}": 0.0,
        "vllm:spec_decode_num_drafts_total": drafts,
        "vllm:spec_decode_num_draft_tokens_total": drafts * len(_POSITIONS),
        "vllm:spec_decode_num_accepted_tokens_total": drafts * sum(_POSITIONS),
        **{
            f"vllm:spec_decode_num_accepted_tokens_per_pos_total{{position={number}}}": drafts * share
            for number, share in enumerate(_POSITIONS)
        },
        "vllm:estimated_flops_per_gpu_total": tokens * 13.5e9,
    }
