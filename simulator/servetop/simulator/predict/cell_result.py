"""The results of one virtual run, in the JSON format of `servetop predict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from servetop.analysis.percentiles import Distribution
from servetop.core.units import MS_PER_S
from servetop.simulator.predict.client_requests import ClientRequest
from servetop.simulator.predict.usage_integrals import UsageIntegrals
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.sim_request import SimSequence

QUANTILES = (50, 90, 99)


def cell_of(engines: Sequence[VirtualEngine]) -> dict[str, Any]:
    """Throughput in tokens/s over first arrival to last finish (ramp and drain included), latencies in ms.

    Requests that the client cancelled count as `cancelled` only, as in the summary of a run.
    """
    usages = [engine.usage for engine in engines]
    schedulers = [engine.scheduler for engine in engines]
    started = min((each.started_at for each in usages if each.started_at is not None), default=0.0)
    duration = max(each.ended_at for each in usages) - started
    finished = [seq for usage in usages for seq in usage.finished]
    completed = [seq for seq in finished if not _is_cancelled(seq)]
    output = sum(seq.output_tokens for seq in completed)
    total = output + sum(seq.prompt_tokens for seq in completed)
    return {
        "output_throughput": _per(output, duration),
        "total_token_throughput": _per(total, duration),
        "preemptions": sum(each.preemptions for each in schedulers),
        "recomputed_tokens": sum(each.recomputed_tokens for each in schedulers),
        "duration": duration,
        "completed": len(completed),
        "cancelled": len(finished) - len(completed),
        "refused": sum(each.refused for each in usages),
        "kv_blocks_total": sum(each.blocks.total for each in schedulers),
        "max_kv_usage": max(each.blocks.peak / each.blocks.total for each in schedulers),
        "mean_running": _per(sum(each.running_seconds for each in usages), duration),
        **_latencies(completed, usages),
    }


def _is_cancelled(seq: SimSequence) -> bool:
    return isinstance(seq.request, ClientRequest) and seq.request.cancelled


def _latencies(completed: Sequence[SimSequence], usages: Sequence[UsageIntegrals]) -> dict[str, Any]:
    first = np.array([(seq.first_token_at or 0.0) - seq.arrival for seq in completed])
    whole = np.array([(seq.finished_at or 0.0) - seq.arrival for seq in completed])
    gaps = Distribution.merged([usage.gap_distribution() for usage in usages])
    return {
        "ttft_ms": summary_ms(Distribution.of(first)),
        "itl_ms": summary_ms(gaps),
        "e2el_ms": summary_ms(Distribution.of(whole)),
    }


def summary_ms(values: Distribution) -> Mapping[str, float]:
    """p50, p90, p99 and mean of seconds, in milliseconds; zeros when there is no sample."""
    names = (*(f"p{share}" for share in QUANTILES), "mean")
    if not values.count:
        return dict.fromkeys(names, 0.0)
    seconds = (*(values.percentile(share) for share in QUANTILES), values.mean)
    return {name: MS_PER_S * value for name, value in zip(names, seconds, strict=True)}


def _per(amount: float, seconds: float) -> float:
    return amount / seconds if seconds else 0.0
