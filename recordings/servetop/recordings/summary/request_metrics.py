"""Totals, throughput and latency statistics of requests, under the key names of `vllm bench serve`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from servetop.analysis.percentiles import Distribution
from servetop.core.arrays import FloatArray
from servetop.core.events import RequestStatus
from servetop.core.units import MS_PER_S
from servetop.recordings.read.request_columns import BoolArray, RequestColumns
from servetop.recordings.summary.in_flight_timeline import InFlightTimeline

METRICS = (
    "ttft", "tpot", "itl", "e2el", "client_queue_time", "ttft_from_due", "e2el_from_due", "e2el_including_client_queue",
)  # fmt: skip
"""Latencies with statistics in milliseconds: `mean_ttft_ms`, …; the last four count from the due time, and the last
is vLLM's name for the one before it."""
REASONING_METRICS = ("ttfot",)
"""With the same statistics, of runs in which a model reasoned."""
_PER_TOKEN = ("itl", "tpot")
UNSIZED_LIMIT = 0.01
"""Share of the completed requests whose chunks may be of unknown size, and are left out of ITL."""
PERCENTILES = (50.0, 90.0, 95.0, 99.0)
"""Always there; --metric-percentiles adds others."""
STATISTICS = ("mean", "median", "std", *(f"p{q:g}" for q in PERCENTILES))
TOTALS = (
    "num_prompts", "duration", "completed", "failed", "errors", "timeouts", "truncated", "cancelled",
    "total_input_tokens", "total_output_tokens", "request_throughput", "request_goodput", "output_throughput",
    "total_token_throughput", "max_output_tokens_per_s", "max_concurrent_requests",
)  # fmt: skip
FIGURES = (*TOTALS, *(f"{statistic}_{metric}_ms" for metric in METRICS for statistic in STATISTICS))
"""Keys of `request_figures`."""
REASONING_FIGURES = tuple(f"{statistic}_{metric}_ms" for metric in REASONING_METRICS for statistic in STATISTICS)
"""And those of a run in which a model reasoned."""


def request_figures(
    samples: RequestColumns, *, goodput: Mapping[str, float], percentiles: Sequence[float] = ()
) -> dict[str, Any]:
    """TOTALS and the statistics of METRICS; latencies and tokens are those of requests that ended well.

    Where a model reasoned there are `total_reasoning_tokens` and the statistics of REASONING_METRICS besides.
    `goodput` are limits in seconds by metric, `percentiles` those besides PERCENTILES; None stands where nothing
    was measured.
    """
    ok = samples.having(RequestStatus.OK)
    per_request = _per_request(samples)
    pools = {name: Distribution.of(values[ok]) for name, values in per_request.items()} | {"itl": samples.itl}
    figures = _totals(samples, goodput_share=_good(per_request, goodput, ok=ok) if goodput else None)
    thoughts = float(np.nansum(samples.reasoning_tokens[ok]))
    if thoughts:
        figures["total_reasoning_tokens"] = int(thoughts)
    reason = figures["itl_reason"] = no_itl_reason(samples.sized[ok])
    for metric in (*METRICS, *REASONING_METRICS) if thoughts else METRICS:
        pool = Distribution.of(np.empty(0)) if reason and metric in _PER_TOKEN else pools[metric]
        named = {f"p{q:.12g}": pool.percentile(q) for q in (*PERCENTILES, *percentiles)}
        statistics = {"mean": pool.mean, "std": pool.std, "median": pool.percentile(50)} | named
        for statistic, value in statistics.items():
            figures[f"{statistic}_{metric}_ms"] = finite(value * MS_PER_S)
    return figures


def no_itl_reason(sized: BoolArray) -> str | None:
    """Why the times between tokens cannot be said; None where they can.

    `sized` says of each request that ended well whether the tokens of each of its events are known.
    """
    unknown = int((~sized).sum())
    if unknown <= UNSIZED_LIMIT * sized.size:
        return None
    return (
        f"the events of {unknown} of {sized.size} requests brought several tokens each, and how many the server "
        "says only at the end: ask for counts in every event (an engine that has continuous usage, such as --engine "
        "vllm)"
    )


def finite(value: float) -> float | None:
    """JSON has no NaN and no infinity: None."""
    return float(value) if math.isfinite(value) else None


def span_of(samples: RequestColumns) -> float:
    """First sent … last done, seconds; 0 when nothing was sent or nothing ended."""
    sent, done = samples.sent[~np.isnan(samples.sent)], samples.ended_at[~np.isnan(samples.ended_at)]
    return float(done.max() - sent.min()) if sent.size and done.size else 0.0


def _totals(samples: RequestColumns, *, goodput_share: int | None) -> dict[str, Any]:
    counts = {status: int(samples.having(status).sum()) for status in RequestStatus}
    ok, duration = samples.having(RequestStatus.OK), span_of(samples)
    prompt, output = int(samples.prompt_tokens[ok].sum()), int(samples.output_tokens[ok].sum())

    def rate(amount: int | None) -> float | None:
        return None if amount is None or duration <= 0 else amount / duration

    failed = (RequestStatus.ERROR, RequestStatus.TIMEOUT, RequestStatus.TRUNCATED)
    return {
        "num_prompts": samples.due.size,
        "duration": duration,
        "completed": counts[RequestStatus.OK],
        "failed": sum(counts[status] for status in failed),
        "errors": counts[RequestStatus.ERROR],
        "timeouts": counts[RequestStatus.TIMEOUT],
        "truncated": counts[RequestStatus.TRUNCATED],
        "cancelled": counts[RequestStatus.CANCELLED],
        "total_input_tokens": prompt,
        "total_output_tokens": output,
        "request_throughput": rate(counts[RequestStatus.OK]),
        "request_goodput": rate(goodput_share),
        "output_throughput": rate(output),
        "total_token_throughput": rate(prompt + output),
        "max_output_tokens_per_s": float(samples.tokens_by_second.max(initial=0.0)),
        "max_concurrent_requests": _most_in_flight(samples),
    }


def _most_in_flight(samples: RequestColumns) -> int:
    known = ~np.isnan(samples.sent)
    return int(InFlightTimeline.of(samples.sent[known], samples.ended_at[known]).levels.max(initial=0))


def _per_request(samples: RequestColumns) -> dict[str, FloatArray]:
    """One value a request in seconds, NaN where it has none."""
    ttft, e2el = samples.first_token_at - samples.sent, samples.done_at - samples.sent
    answered = np.where(samples.reasoning_tokens > 0, samples.first_output_at, samples.first_token_at)
    later = samples.output_tokens - samples.first_tokens
    later_tokens = np.where(later > 0, later, math.nan)
    return {
        "ttft": ttft,
        "tpot": (e2el - ttft) / later_tokens,
        "e2el": e2el,
        "client_queue_time": samples.sent - samples.due,
        "ttft_from_due": samples.first_token_at - samples.due,
        "e2el_from_due": samples.done_at - samples.due,
        "e2el_including_client_queue": samples.done_at - samples.due,
        "ttfot": answered - samples.sent,
    }


def _good(per_request: Mapping[str, FloatArray], goodput: Mapping[str, float], *, ok: BoolArray) -> int:
    """Requests that ended well and kept every limit; one without a TPOT (a single token) keeps that limit.

    One that reasoned and never came to its answer breaks that of TTFOT.
    """
    good = ok.copy()
    for metric, limit in goodput.items():
        if metric in per_request:
            values = per_request[metric]
            spared = np.isnan(per_request["ttft"] if metric == "ttfot" else values)
            good &= spared | (values <= limit)
    return int(good.sum())
