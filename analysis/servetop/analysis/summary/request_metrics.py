"""Totals, throughput, TTFT percentiles and other latency statistics, with the key names of `vllm bench serve`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Container, Mapping, Sequence

import numpy as np

from servetop.analysis.columns.latencies import end_to_end_latencies, times_per_output_token, times_to_first_token
from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.statistics.percentiles import Distribution
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.analysis.summary.summary_types import (
    METRICS,
    REASONING_METRICS,
    LatencySummary,
    RequestSummary,
)
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.chunk_codec import UNSIZED_LIMIT
from servetop.core.config import STANDARD_PERCENTILES
from servetop.core.events import RequestStatus
from servetop.core.text.counted import counted
from servetop.core.units import MS_PER_S

_PER_TOKEN = ("itl", "tpot")
_NOTHING = Distribution.of(np.empty(0))
_BLOCK = 100_000
"""Requests whose latencies are in memory at once."""


def request_summary(
    requests: RequestColumns, *, goodput: Mapping[str, float], percentiles: Sequence[float] = ()
) -> RequestSummary:
    """Return totals and latencies; latencies and tokens are those of successful requests.

    `goodput` are limits in seconds by metric, `percentiles` those in addition to the standard ones. REASONING_METRICS
    are computed only if a model reasoned.
    """
    ok = requests.with_status(RequestStatus.OK)
    reasoning = int(float(np.nansum(requests.reasoning_tokens[ok], dtype=np.float64)))
    reason = no_itl_reason(requests.sized[ok])
    metrics = (*METRICS, *REASONING_METRICS) if reasoning else METRICS
    unknown = _PER_TOKEN if reason else ()
    percentiles = (*STANDARD_PERCENTILES, *percentiles)
    return dataclasses.replace(
        _totals(requests, goodput_share=_good(requests, goodput) if goodput else None),
        total_reasoning_tokens=reasoning or None,
        itl_reason=reason or _no_gaps_reason(requests, ok),
        latencies={
            metric: _latency(_NOTHING if metric in unknown else _pool(requests, metric, ok), percentiles)
            for metric in metrics
        },
    )


def _pool(requests: RequestColumns, metric: str, ok: BoolArray) -> Distribution:
    """Return a latency of the successful requests; only one of them is in memory at once."""
    return requests.itl if metric == "itl" else Distribution.of(_LATENCIES[metric](requests)[ok])


def _good(requests: RequestColumns, goodput: Mapping[str, float]) -> int:
    """Count the successful requests within all limits, in blocks to save memory."""
    good = 0
    for first in range(0, requests.due.size, _BLOCK):
        block = requests.part(slice(first, first + _BLOCK))
        good += int(
            meets_objectives(latencies_by_request(block), goodput, ok=block.with_status(RequestStatus.OK)).sum()
        )
    return good


def _latency(pool: Distribution, percentiles: Sequence[float]) -> LatencySummary:
    return LatencySummary(
        mean=finite(pool.mean * MS_PER_S),
        std=finite(pool.std * MS_PER_S),
        median=finite(pool.percentile(50) * MS_PER_S),
        percentiles={f"p{q:.12g}": finite(pool.percentile(q) * MS_PER_S) for q in percentiles},
    )


def no_itl_reason(sized: BoolArray) -> str | None:
    """Return why the inter-token latencies are unknown; None if they are known.

    `sized` marks the successful requests whose tokens per event are known.
    """
    unknown = int((~sized).sum())
    if unknown <= UNSIZED_LIMIT * sized.size:
        return None
    return (
        f"the events of {unknown} of {counted(sized.size, 'request')} contained several tokens each, or not all tokens,"
        " and the server reported how many only at the end, not in every event (vLLM's continuous_usage_stats)"
    )


def _no_gaps_reason(requests: RequestColumns, ok: BoolArray) -> str | None:
    """Return why successful requests of known chunks have no inter-token latency; None if they have one."""
    if requests.itl.count or not ok.any():
        return None
    one_token = float(np.nanmax(requests.output_tokens[ok], initial=0.0)) <= 1
    return "each response had one token" if one_token else "each response arrived in one event: it was not streamed"


def finite(value: float) -> float | None:
    """Return the value, or None for NaN and infinity, which JSON cannot represent."""
    return float(value) if math.isfinite(value) else None


def span_of(requests: RequestColumns) -> float:
    """Return the seconds from the first request sent to the last one done; 0 if none was sent or ended."""
    first, last = np.fmin.reduce(requests.sent, initial=math.inf), np.fmax.reduce(requests.ended_at, initial=-math.inf)
    return float(last - first) if math.isfinite(first) and math.isfinite(last) else 0.0


def _totals(requests: RequestColumns, *, goodput_share: int | None) -> RequestSummary:
    counts = {status: int(requests.with_status(status).sum()) for status in RequestStatus}
    ok, duration = requests.with_status(RequestStatus.OK), span_of(requests)
    prompt, output = (
        int(tokens[ok].sum(dtype=np.float64)) for tokens in (requests.prompt_tokens, requests.output_tokens)
    )

    def rate(amount: int | None) -> float | None:
        return None if amount is None or duration <= 0 else amount / duration

    return RequestSummary(
        num_prompts=requests.due.size,
        duration=duration,
        completed=counts[RequestStatus.OK],
        failed=int(requests.failed.sum()),
        errors=counts[RequestStatus.ERROR],
        timeouts=counts[RequestStatus.TIMEOUT],
        truncated=counts[RequestStatus.TRUNCATED],
        cancelled=counts[RequestStatus.CANCELLED],
        total_input_tokens=prompt,
        total_output_tokens=output,
        request_throughput=rate(counts[RequestStatus.OK]),
        request_goodput=rate(goodput_share),
        output_throughput=rate(output),
        total_token_throughput=rate(prompt + output),
        max_output_tokens_per_s=float(requests.tokens_by_second.max(initial=0.0)),
        max_concurrent_requests=InFlightTimeline.of(requests.sent, requests.ended_at).highest,
        total_reasoning_tokens=None,
        itl_reason=None,
        latencies={},
    )


def latencies_by_request(requests: RequestColumns, *, only: Container[str] | None = None) -> dict[str, FloatArray]:
    """Return one value per request in seconds, by metric; NaN if the request has none.

    `only` names the metrics that are wanted, 8 bytes per request each.
    """
    wanted = {metric: latency for metric, latency in _LATENCIES.items() if only is None or metric in only}
    return {metric: latency(requests) for metric, latency in wanted.items()}


def _tpot(requests: RequestColumns) -> FloatArray:
    return times_per_output_token(
        times_to_first_token(requests.sent, requests.first_token_at),
        end_to_end_latencies(requests.sent, requests.done_at),
        requests.output_tokens - requests.first_tokens,
        known=requests.sized,
    )


def _ttfot(requests: RequestColumns) -> FloatArray:
    first_output = np.where(requests.reasoning_tokens > 0, requests.first_output_at, requests.first_token_at)
    return times_to_first_token(requests.sent, first_output)


_LATENCIES: Mapping[str, Callable[[RequestColumns], FloatArray]] = {
    "ttft": lambda requests: times_to_first_token(requests.sent, requests.first_token_at),
    "tpot": _tpot,
    "e2el": lambda requests: end_to_end_latencies(requests.sent, requests.done_at),
    "client_queue_time": lambda requests: requests.sent - requests.due,
    "ttft_from_due": lambda requests: times_to_first_token(requests.due, requests.first_token_at),
    "e2el_from_due": lambda requests: end_to_end_latencies(requests.due, requests.done_at),
    "e2el_including_client_queue": lambda requests: end_to_end_latencies(requests.due, requests.done_at),
    "ttfot": _ttfot,
}


def meets_objectives(
    per_request: Mapping[str, FloatArray], goodput: Mapping[str, float], *, ok: BoolArray
) -> BoolArray:
    """Return a mask of the successful requests within all limits; one without a TPOT (a single token) meets that limit.

    A request that reasoned but produced no output misses the limit of TTFOT.
    """
    good = ok.copy()
    for metric, limit in goodput.items():
        if metric in per_request:
            values = per_request[metric]
            exempt = np.isnan(per_request["ttft"] if metric == "ttfot" else values)
            good &= exempt | (values <= limit)
    return good
