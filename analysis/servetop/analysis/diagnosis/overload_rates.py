"""The capacity, the sustainable rate and the batch size to try, of the overload that decides a run's verdict."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from servetop.analysis.diagnosis.capacity import (
    Capacity,
    ServiceTimes,
    batch_service,
    capacity_of,
    prefill_capacity,
    prefill_service,
    sustainable_rate,
)
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.evidence import knows_every_replica, seen_replicas
from servetop.analysis.diagnosis.overload import Limit, Overload, full_batch
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.signals import replica_count
from servetop.analysis.engine_gauges import KV_FULL

DEFAULT_OBJECTIVE = 0.5
"""Seconds of TTFT, for the knee of a run without an objective."""
_PLAUSIBLE = 0.5
"""Least sequences in a full cache / those that its blocks should hold; with fewer, something else holds blocks."""


def overload_capacity(limit: Limit, main: Overload, run: RunRecord) -> Capacity | None:
    """Return what the engine completed during an overload; None if the limit is unknown, or if nothing waited."""
    if limit in (Limit.LONG_PROMPTS, Limit.UNKNOWN) or not _waits(main):
        return None
    return (prefill_capacity if limit is Limit.RATE else capacity_of)(main, run.history, run.until)


def _waits(main: Overload) -> bool:
    """Whether requests waited, so that the throughput is the engine's capacity: in a growing batch it still rises."""
    return any(each.kind is not EpisodeKind.IN_FLIGHT for each in main.episodes)


def overload_rates(limit: Limit, capacity: Capacity, run: RunRecord) -> tuple[float | None, float | None]:
    """Return the sustainable rate by the objective on TTFT, and the knee; None if only a bound of them is known.

    Each of several replicas serves its part of the requests with its own slots; the sequences are those of the
    replicas with metrics.
    """
    if capacity.is_upper_bound:
        return None, None
    count, seen = replica_count(run.header.engine), seen_replicas(run)
    each = replace(capacity, rate=capacity.rate / count, running=capacity.running / seen)
    rates = _rates_of_one(limit, each, run, replicas=seen)
    sustainable, knee = (None if rate is None else count * rate for rate in rates)
    return sustainable, knee


def _rates_of_one(
    limit: Limit, capacity: Capacity, run: RunRecord, *, replicas: int
) -> tuple[float | None, float | None]:
    """Return both rates of one replica, by its part of the capacity."""
    times, ttft = _service(limit, capacity, run, replicas=replicas), run.ttft_objective
    if times is None:
        return capacity.rate, capacity.rate
    default = DEFAULT_OBJECTIVE if math.isnan(ttft) else ttft
    knee = sustainable_rate(times, capacity, max(default, times.base), kept_share=0.5)
    return capacity.rate if math.isnan(ttft) else sustainable_rate(times, capacity, ttft), knee


def _service(limit: Limit, capacity: Capacity, run: RunRecord, *, replicas: int) -> ServiceTimes | None:
    """Return the service of the engine; None without a model."""
    workload = run.header.config.workload
    if limit is Limit.RATE:
        return prefill_service(run.history, capacity, workload, run.until)
    return batch_service(run.history, capacity, workload, run.until, replicas=replicas)


def advised_batch(limit: Limit, main: Overload, run: RunRecord) -> int | None:
    """Return the batch size of a replica to try; None if there is no advice on it, or if a replica has no metrics."""
    if not knows_every_replica(run):
        return None
    if limit is Limit.KV:
        if holds_too_few(run, main):
            return None
        size = next((each for each in main.episodes if each.fits), None)
        smaller = size is not None and main.first(EpisodeKind.PREEMPTIONS) is not None and not size.fits >= size.batch
        return size.fits if size is not None and smaller else None
    episode = full_batch(main, run.history, run.until)
    if limit is not Limit.BATCH or episode is None:
        return None
    usage = _kv_peak(run, main)
    return (
        None
        if math.isnan(usage) or usage <= 0
        else larger_batch(episode.batch / replica_count(run.header.engine), usage)
    )


def larger_batch(batch: float, usage: float) -> int | None:
    """Return the power of two times the batch size that fills the KV cache to at most 90 %; None if none is larger."""
    doublings = math.floor(math.log2(0.9 / usage)) if usage < 0.9 else 0
    return round(batch * 2 ** min(doublings, 3)) if doublings >= 1 else None


def _kv_peak(run: RunRecord, overload: Overload) -> float:
    until = run.until if overload.end is None else overload.end
    first, stop = run.history.first_from(overload.begin), run.history.up_to(until)
    usage = run.kv_usage(first, max(first, stop))
    known = usage[usage == usage]
    return float(known.max()) if known.size else math.nan


def holds_too_few(run: RunRecord, main: Overload) -> bool:
    """Whether the full cache holds far fewer sequences than its blocks explain."""
    until = run.until if main.end is None else main.end
    first, stop = run.history.first_from(main.begin), run.history.up_to(until)
    running, usage = (
        run.history.column("running", start=first, stop=max(first, stop)),
        run.kv_usage(first, max(first, stop)),
    )
    full = (usage >= KV_FULL) & (running > 0)
    return bool(full.any()) and float(np.median(running[full])) < _PLAUSIBLE * fitting_sequences(run)


def fitting_sequences(run: RunRecord) -> float:
    """Return how many sequences of the workload's mean length the KV blocks hold; NaN if that is unknown."""
    facts = run.header.engine
    if facts is None or not facts.kv_blocks_total or not facts.block_size:
        return math.nan
    stop = len(run.history)
    tokens = sum(run.history.histogram(name, start=0, stop=stop).mean for name in ("input_len", "output_len"))
    return facts.kv_blocks_total * facts.block_size / tokens if tokens > 0 else math.nan
