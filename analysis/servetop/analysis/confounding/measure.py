"""Measures the conditions of a run, and of each of its stages, from what its recording holds."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from servetop.analysis.columns.request_columns import FAILED_CODES, STATUSES, StageRequests
from servetop.analysis.columns.run_columns import Period, StagePeriod, sample_column
from servetop.analysis.confounding.conditions import (
    CacheCounts,
    ClientLoad,
    GpuReadings,
    KvSize,
    ObservedLengths,
    ReplicaCounts,
    RunConditions,
)
from servetop.analysis.confounding.server_restarts import ServerRestarts
from servetop.analysis.diagnosis.log_severity import severity_of
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.cache_check import CacheCheck
from servetop.analysis.trust.consistency import increase
from servetop.analysis.trust.live_trust import live_trust
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import EngineSample, GpuSample, LogLine, ReplicaSample, RequestStatus, Severity
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.core.tick import TICK_SECONDS


@dataclass(frozen=True, kw_only=True, eq=False)
class RunEvidence:
    """The rows of a run from which its conditions are measured."""

    header: RunHeader
    stages: Sequence[StagePeriod]
    history: TickHistory
    requests: StageRequests
    engine_samples: Sequence[EngineSample]
    replica_samples: Sequence[ReplicaSample] = ()
    gpu_samples: Sequence[GpuSample] = ()
    log_lines: Sequence[LogLine] = ()
    engine_series: Sequence[SeriesScrape] = ()
    """Series of the engine page that are no fields of its samples, such as the start of its process."""
    cache_check: CacheCheck = CacheCheck()

    @cached_property
    def scraped_at(self) -> FloatArray:
        """The end of each scrape."""
        return sample_column(self.engine_samples, "scrape_end")

    @cached_property
    def increases(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Tokens found in the prefix cache, looked up in it, and generated, since the previous scrape; else 0."""
        hits, queries, generated = (
            np.nan_to_num(increase(sample_column(self.engine_samples, name)))
            for name in ("prefix_cache_hits_total", "prefix_cache_queries_total", "generation_tokens_total")
        )
        return hits, queries, generated

    @cached_property
    def restarted_at(self) -> FloatArray:
        """When a server restarted, by its counters or by the start of its process."""
        found = ServerRestarts(replicas=bool(self.replica_samples))
        found.add(self.history.ticks[:], self.replica_samples, (), self.engine_series)
        return np.array(found.times, dtype=np.float64)

    @cached_property
    def errors_at(self) -> FloatArray:
        """The times of the log's lines with an error, while a stage had load: engines also log errors when stopped."""
        times = np.array([line.at for line in self.log_lines if severity_of(line.text) is Severity.ERROR])
        under_load = [Period(start=each.period.start, until=self._load_end(each.period)) for each in self.stages]
        within = [each.contains(times) for each in under_load]
        return times[np.any(within, axis=0)] if within else np.empty(0)

    def _load_end(self, period: Period) -> float:
        """Return the end of the last tick of a period in which a request was in flight or ended."""
        ends, active = self._tick_load
        within = active & (ends > period.start) & (ends - TICK_SECONDS < period.until)
        return float(ends[within][-1]) if within.any() else period.start

    @cached_property
    def _tick_load(self) -> tuple[FloatArray, BoolArray]:
        """The end of each tick, and whether a request was in flight or ended in it."""
        active = sum(np.nan_to_num(self.history.column(name)) for name in ("in_flight", "ok", "failed", "cancelled"))
        return np.array([tick.end for tick in self.history.ticks]), np.asarray(active > 0)

    @cached_property
    def devices(self) -> Mapping[int, Sequence[GpuSample]]:
        """Readings by device and time; only of devices on which the engine holds memory, if that is known."""
        own = {sample.index for sample in self.gpu_samples if sample.engine_memory}
        found: dict[int, list[GpuSample]] = {}
        for sample in sorted(self.gpu_samples, key=_at):
            if not own or sample.index in own:
                found.setdefault(sample.index, []).append(sample)
        return dict(sorted(found.items()))

    @cached_property
    def kv(self) -> KvSize:
        """The median of the replicas, else of the engine's samples, else the number reported at its start."""
        return _kv_size(self)


def measure_conditions(run: RunEvidence) -> RunConditions:
    """Return the conditions of the whole run except warm-ups, and of each stage with load."""
    warm_at = max((each.period.until for each in run.stages if each.change.warmup), default=-math.inf)
    loaded = [each for each in run.stages if not each.change.warmup]
    parts = {
        each.change.index: _measured(run, each.period, rows=run.requests.of_stage(each.change.index)) for each in loaded
    }
    rows = np.isin(run.requests.stages, list(parts))
    return _measured(run, Period(start=warm_at), rows=rows, parts=parts)


def _measured(
    run: RunEvidence, period: Period, *, rows: slice | BoolArray, parts: Mapping[int, RunConditions] | None = None
) -> RunConditions:
    """Return the conditions of a period, whose requests are at `rows`; `parts` are those of its stages."""
    columns, status = run.requests.columns, run.requests.columns.status[rows]
    ok = status == STATUSES.index(RequestStatus.OK)
    replicas = _replicas(run, period, answered_by=run.requests.replicas[rows][ok], requests=ok.size)
    # the cache of the whole run is counted with the warm-ups, which fill it
    counted = period if parts is None else Period()
    return RunConditions(
        config=run.header.config,
        requests=ok.size,
        failed=int(np.isin(status, FAILED_CODES).sum()),
        lengths=ObservedLengths(
            ids=run.requests.ids[rows][ok],
            prompt=columns.prompt_tokens[rows][ok],
            output=columns.output_tokens[rows][ok],
        ),
        cache=_cache(run, counted, replicas=replicas, from_start=parts is not None),
        client=_client(run, period),
        kv=run.kv,
        gpus=_gpus(run, period),
        replicas=replicas,
        error_lines=int(period.contains(run.errors_at).sum()),
        restarts=int(period.contains(run.restarted_at).sum()),
        cache_check=run.cache_check,
        stages=parts or {},
    )


def _cache(run: RunEvidence, period: Period, *, replicas: ReplicaCounts, from_start: bool) -> CacheCounts:
    within = period.contains(run.scraped_at)
    hits, queries, generated = (each[within] for each in run.increases)
    size, holders = run.kv.tokens, replicas.answered or replicas.configured
    capacity = math.nan if size is None else size * holders
    return CacheCounts(hits=hits, queries=queries, generated=generated, capacity=capacity, from_start=from_start)


def _client(run: RunEvidence, period: Period) -> ClientLoad:
    ticks = run.history.ticks[:]
    start = bisect.bisect_right(ticks, period.start, key=lambda tick: tick.end)
    stop = bisect.bisect_left(ticks, period.until, key=lambda tick: tick.end)
    seconds = (stop - start) * TICK_SECONDS * run.header.config.workers
    cpu_seconds = float(run.history.column("cpu_seconds", start=start, stop=stop).sum())
    return ClientLoad(
        trust=live_trust(run.history, start, stop), cpu_share=cpu_seconds / seconds if seconds > 0 else math.nan
    )


def _kv_size(run: RunEvidence) -> KvSize:
    facts = run.header.engine
    block_size = None if facts is None else facts.block_size
    sizes = sample_column(run.replica_samples or run.engine_samples, "kv_blocks_total")
    known = sizes[sizes > 0]
    if known.size:
        return KvSize(blocks=float(np.median(known)), block_size=block_size)
    if facts is None or not facts.kv_blocks_total:
        return KvSize(blocks=None, block_size=block_size)
    return KvSize(blocks=facts.kv_blocks_total / max(len(facts.replica_urls), 1), block_size=block_size)


def _gpus(run: RunEvidence, period: Period) -> dict[int, GpuReadings]:
    readings = {index: _readings(rows, period) for index, rows in run.devices.items()}
    return {index: each for index, each in readings.items() if each.utilisation.size}


def _readings(rows: Sequence[GpuSample], period: Period) -> GpuReadings:
    within = rows[bisect.bisect_left(rows, period.start, key=_at) : bisect.bisect_left(rows, period.until, key=_at)]
    reasons = {reason for row in within if row.throttled for reason in row.throttled.split(", ")}
    foreign = [
        max(row.memory_used - row.engine_memory, 0)
        for row in within
        if row.memory_used is not None and row.engine_memory
    ]
    return GpuReadings(
        utilisation=np.array([row.utilisation for row in within], dtype=np.float64),
        sm_clock=np.array([row.sm_clock for row in within], dtype=np.float64),
        power=np.array([row.power for row in within], dtype=np.float64),
        throttled=np.array([bool(row.throttled) for row in within], dtype=np.bool_),
        reasons=tuple(sorted(reasons)),
        foreign_memory=float(np.mean(foreign)) if foreign else math.nan,
    )


def _at(sample: GpuSample) -> float:
    return sample.at


def _replicas(run: RunEvidence, period: Period, *, answered_by: FloatArray, requests: int) -> ReplicaCounts:
    facts = run.header.engine
    configured = len(facts.replica_urls) if facts is not None and facts.replica_urls else 1
    if configured == 1:
        return ReplicaCounts(configured=1, requests=requests)
    known = answered_by[(answered_by >= 0) & (answered_by < configured)].astype(np.int64)
    if known.size:
        served = tuple(map(float, np.bincount(known, minlength=configured)))
    else:
        served = tuple(_generated(run.replica_samples, number, period) for number in range(configured))
    return ReplicaCounts(configured=configured, served=served if any(served) else (), requests=requests)


def _generated(samples: Sequence[ReplicaSample], replica: int, period: Period) -> float:
    own = [sample for sample in samples if sample.replica == replica]
    within = period.contains(sample_column(own, "scrape_end"))
    return float(np.nansum(increase(sample_column(own, "generation_tokens_total"))[within]))
