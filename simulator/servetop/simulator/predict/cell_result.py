"""Computes the results of a cell from its virtual engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from servetop.analysis.diagnosis.capacity import KEPT_SHARE
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.engine_gauges import KV_ROOMY
from servetop.analysis.statistics.percentiles import Distribution
from servetop.core.units import MS_PER_S
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.predict.client_requests import ClientRequest
from servetop.simulator.predict.prediction import CellResult, PredictedLatency
from servetop.simulator.predict.virtual_time import VirtualEngine


def cell_result(engines: Sequence[VirtualEngine], *, objectives: Mapping[str, float]) -> CellResult:
    """Return the results of the engines of one cell, its replicas; `objectives` are limits in seconds by metric."""
    usages = [engine.usage for engine in engines]
    schedulers = [engine.scheduler for engine in engines]
    started = min((each.started_at for each in usages if each.started_at is not None), default=0.0)
    duration = max(each.ended_at for each in usages) - started
    finished = [seq for usage in usages for seq in usage.finished]
    completed = [seq for seq in finished if not _is_cancelled(seq)]
    output = sum(seq.output_tokens for seq in completed)
    ttft, e2el = (np.array([latency_of(seq, metric) for seq in completed]) for metric in ("ttft", "e2el"))
    refused, saturated = sum(each.refused for each in usages), _is_saturated(engines)
    return CellResult(
        request_throughput=_per_second(len(completed), duration),
        share_within=_share_within(completed, objectives, failed=refused),
        saturated=saturated,
        limit=_limit(engines, saturated=saturated),
        output_throughput=_per_second(output, duration),
        total_token_throughput=_per_second(output + sum(seq.prompt_tokens for seq in completed), duration),
        preemptions=sum(each.preemptions for each in schedulers),
        recomputed_tokens=sum(each.recomputed_tokens for each in schedulers),
        duration=duration,
        completed=len(completed),
        cancelled=len(finished) - len(completed),
        refused=refused,
        kv_blocks_total=sum(each.blocks.total for each in schedulers),
        max_kv_usage=max(each.blocks.peak / each.blocks.total for each in schedulers),
        mean_running=_per_second(sum(each.running_seconds for each in usages), duration),
        ttft_ms=predicted_latency(Distribution.of(ttft)),
        itl_ms=predicted_latency(Distribution.merged([usage.gap_distribution() for usage in usages])),
        e2el_ms=predicted_latency(Distribution.of(e2el)),
    )


def _share_within(completed: Sequence[SimSequence], objectives: Mapping[str, float], *, failed: int) -> float | None:
    """Return the fraction of the requests that met all objectives; None without objectives or requests."""
    if not objectives or not (completed or failed):
        return None
    good = sum(all(latency_of(seq, name) <= limit for name, limit in objectives.items()) for seq in completed)
    return good / (len(completed) + failed)


def latency_of(seq: SimSequence, metric: str) -> float:
    """Return a latency of a completed request in seconds; TPOT is 0 without later tokens."""
    first, last = (seq.first_token_at or 0.0) - seq.arrival, (seq.finished_at or 0.0) - seq.arrival
    if metric == "tpot":
        return (last - first) / max(seq.output_tokens - 1, 1)
    return last if metric == "e2el" else first


def _is_saturated(engines: Sequence[VirtualEngine]) -> bool:
    """Whether too many requests had no first token when the last one arrived."""
    finished = [seq for engine in engines for seq in engine.usage.finished]
    last = max((seq.arrival for seq in finished), default=0.0)
    waiting = sum((seq.first_token_at or 0.0) > last for seq in finished)
    return waiting > max((1 - KEPT_SHARE) * len(finished), 1)


def _limit(engines: Sequence[VirtualEngine], *, saturated: bool) -> str | None:
    """Return what an engine ran out of; None if of nothing."""
    if any(engine.scheduler.preemptions for engine in engines):
        return Limit.KV.value
    if any(_most_running(engine.usage.finished) >= engine.scheduler.limits.max_num_seqs for engine in engines):
        return Limit.BATCH.value
    if any(engine.scheduler.blocks.peak >= KV_ROOMY * engine.scheduler.blocks.total for engine in engines):
        return Limit.KV.value
    return Limit.RATE.value if saturated else None


def _most_running(finished: Sequence[SimSequence]) -> int:
    """Return the largest number of requests that ran at once."""
    starts = np.sort([seq.arrival if seq.scheduled_at is None else seq.scheduled_at for seq in finished])
    ends = np.sort([seq.finished_at or 0.0 for seq in finished])
    running = np.arange(1, starts.size + 1) - np.searchsorted(ends, starts, side="right")
    return int(running.max(initial=0))


def _is_cancelled(seq: SimSequence) -> bool:
    return isinstance(seq.request, ClientRequest) and seq.request.cancelled


def predicted_latency(seconds: Distribution) -> PredictedLatency:
    """Return the statistics of a latency in seconds, converted to milliseconds."""
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
