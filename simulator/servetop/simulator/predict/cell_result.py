"""Computes the results of a cell from its virtual engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.analysis.percentiles import Distribution
from servetop.core.units import MS_PER_S
from servetop.simulator.predict.client_requests import ClientRequest
from servetop.simulator.predict.prediction import CellResult, PredictedLatency
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.sim_request import SimSequence


def cell_result(engines: Sequence[VirtualEngine]) -> CellResult:
    """The results of the engines of one cell, its replicas."""
    usages = [engine.usage for engine in engines]
    schedulers = [engine.scheduler for engine in engines]
    started = min((each.started_at for each in usages if each.started_at is not None), default=0.0)
    duration = max(each.ended_at for each in usages) - started
    finished = [seq for usage in usages for seq in usage.finished]
    completed = [seq for seq in finished if not _is_cancelled(seq)]
    output = sum(seq.output_tokens for seq in completed)
    ttft = np.array([(seq.first_token_at or 0.0) - seq.arrival for seq in completed])
    e2el = np.array([(seq.finished_at or 0.0) - seq.arrival for seq in completed])
    return CellResult(
        output_throughput=_per_second(output, duration),
        total_token_throughput=_per_second(output + sum(seq.prompt_tokens for seq in completed), duration),
        preemptions=sum(each.preemptions for each in schedulers),
        recomputed_tokens=sum(each.recomputed_tokens for each in schedulers),
        duration=duration,
        completed=len(completed),
        cancelled=len(finished) - len(completed),
        refused=sum(each.refused for each in usages),
        kv_blocks_total=sum(each.blocks.total for each in schedulers),
        max_kv_usage=max(each.blocks.peak / each.blocks.total for each in schedulers),
        mean_running=_per_second(sum(each.running_seconds for each in usages), duration),
        ttft_ms=predicted_latency(Distribution.of(ttft)),
        itl_ms=predicted_latency(Distribution.merged([usage.gap_distribution() for usage in usages])),
        e2el_ms=predicted_latency(Distribution.of(e2el)),
    )


def _is_cancelled(seq: SimSequence) -> bool:
    return isinstance(seq.request, ClientRequest) and seq.request.cancelled


def predicted_latency(seconds: Distribution) -> PredictedLatency:
    """The statistics of a latency in seconds, converted to milliseconds."""
    if not seconds.count:
        return PredictedLatency()
    return PredictedLatency(
        p50=MS_PER_S * seconds.percentile(50),
        p90=MS_PER_S * seconds.percentile(90),
        p99=MS_PER_S * seconds.percentile(99),
        mean=MS_PER_S * seconds.mean,
    )


def _per_second(amount: float, seconds: float) -> float:
    return amount / seconds if seconds else 0.0
