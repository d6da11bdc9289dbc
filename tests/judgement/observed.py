"""What an observer records of a virtual run whose engine exports less, or later, than the simulator does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from servetop.core.events import EngineSample, ReplicaSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.simulator.virtual_run.virtual_run import VirtualRun

Observation = Callable[[VirtualRun], VirtualRun]
"""Returns the run as it is recorded with less known about its engine; the client's side is never changed."""
PAGE_AGE = 5.0
"""Seconds by which late pages are older than their scrape."""
_BATCH: dict[str, Any] = {"max_num_seqs": None}
_WAITING: dict[str, Any] = {"waiting": None, "queue_seconds_total": None, "queued_requests_total": None}
_KV: dict[str, Any] = {"kv_blocks_used": None, "kv_blocks_total": None, "kv_usage": None, "preemptions_total": None}
_KV_FACTS: dict[str, Any] = {"kv_blocks_total": None, "block_size": None}


def whole(run: VirtualRun) -> VirtualRun:
    """Everything that the simulator exports."""
    return run


def without_batch_limit(run: VirtualRun) -> VirtualRun:
    """As vLLM that servetop attached to: `max_num_seqs` is neither on the page nor known from a start."""
    return _without(_no_limits(run), _BATCH, not_exported=_BATCH, max_num_seqs=None, changes_batch_size_live=False)


def without_waiting(run: VirtualRun) -> VirtualRun:
    """An engine that exports neither the number of waiting requests nor the time that they waited."""
    return _without(run, _WAITING, not_exported=_WAITING)


def without_kv(run: VirtualRun) -> VirtualRun:
    """An engine that exports neither the use of its KV blocks nor preemptions."""
    return _without(run, _KV, not_exported=_KV, **_KV_FACTS)


def without_metrics(run: VirtualRun) -> VirtualRun:
    """A server without a metrics page."""
    facts: dict[str, Any] = {"max_num_seqs": None, "changes_batch_size_live": False, **_KV_FACTS}
    bare = _with_samples(_no_limits(run), [None] * len(run.ticks))
    return dataclasses.replace(_with_facts(bare, **facts), replica_samples=())


def every_second(run: VirtualRun) -> VirtualRun:
    """Scrapes at 1 Hz."""
    return _scraped_every(run, 1.0)


def every_five_seconds(run: VirtualRun) -> VirtualRun:
    """Scrapes at 0.2 Hz."""
    return _scraped_every(run, 5.0)


def late_pages(run: VirtualRun) -> VirtualRun:
    """Pages that describe the engine as it was five seconds before the scrape, as an exporter with a cache does."""
    lag = round(PAGE_AGE / TICK_SECONDS)
    old = [*[None] * lag, *(tick.engine for tick in run.ticks)]
    pages = (None if was is None else _scraped_at(was, tick.end) for was, tick in zip(old, run.ticks, strict=False))
    return _with_facts(_with_samples(run, pages), page_age=PAGE_AGE)


def without_second_replica(run: VirtualRun) -> VirtualRun:
    """Only the first replica has a metrics page; ValueError for a run with one replica."""
    if not run.replica_samples:
        raise ValueError("the run has one replica")
    first = [sample for sample in run.replica_samples if sample.replica == 0]
    newest: list[EngineSample | None] = []
    count = 0
    for tick in run.ticks:
        shown = tick.engine
        while shown is not None and count < len(first) and first[count].scrape_start <= shown.scrape_start:
            count += 1
        newest.append(_alone(first[count - 1]) if count and shown is not None else None)
    total = run.header.engine.kv_blocks_total if run.header.engine else None
    facts = {"kv_blocks_total": None if total is None else total // _replicas(run)}
    kept = tuple(sample for sample in run.replica_samples if sample.replica == 0)
    return dataclasses.replace(_with_facts(_with_samples(run, newest), **facts), replica_samples=kept)


OBSERVATIONS: dict[str, Observation] = {
    "whole": whole,
    "no max_num_seqs": without_batch_limit,
    "no waiting": without_waiting,
    "no KV": without_kv,
    "1 Hz": every_second,
    "0.2 Hz": every_five_seconds,
    "late pages": late_pages,
    "no metrics": without_metrics,
    "one of two": without_second_replica,
}
"""The columns of the matrix."""
PAGE_AGES = {"1 Hz": 1.0, "0.2 Hz": 5.0, "late pages": PAGE_AGE}
"""Seconds by which the newest page may be old, if not 0."""


def observations_of(run: VirtualRun) -> dict[str, Observation]:
    """Return the observations that a run can have: the last one only with two replicas."""
    return {
        name: each
        for name, each in OBSERVATIONS.items()
        if run.replica_samples or each is not OBSERVATIONS["one of two"]
    }


def _replicas(run: VirtualRun) -> int:
    return len({sample.replica for sample in run.replica_samples})


def _alone(sample: ReplicaSample) -> EngineSample:
    """The sample of a replica as that of the only engine; the same object gives an equal one."""
    values = {each.name: getattr(sample, each.name) for each in dataclasses.fields(EngineSample)}
    return EngineSample(**values)


def _scraped_at(sample: EngineSample, at: float) -> EngineSample:
    return dataclasses.replace(sample, scrape_start=at, scrape_end=at + sample.scrape_end - sample.scrape_start)


def _scraped_every(run: VirtualRun, seconds: float) -> VirtualRun:
    """Keep the first sample of every period as the newest one until the next; None where a scrape failed."""
    every = round(seconds / TICK_SECONDS)
    kept: list[EngineSample | None] = []
    for number, tick in enumerate(run.ticks):
        kept.append(tick.engine if number % every == 0 else kept[-1])
    shown = {sample.scrape_start for sample in kept if sample is not None}
    scraped = tuple(sample for sample in run.replica_samples if sample.scrape_start in shown)
    return dataclasses.replace(_with_samples(run, kept), replica_samples=scraped)


def _without(run: VirtualRun, fields: dict[str, Any], *, not_exported: Iterable[str], **facts: Any) -> VirtualRun:
    """Remove fields from every sample; a sample that several ticks share stays shared."""
    changed = {id(tick.engine): dataclasses.replace(tick.engine, **fields) for tick in run.ticks if tick.engine}
    samples = [None if tick.engine is None else changed[id(tick.engine)] for tick in run.ticks]
    replicas = tuple(dataclasses.replace(sample, **fields) for sample in run.replica_samples)
    shown = dataclasses.replace(_with_samples(run, samples), replica_samples=replicas)
    return _with_facts(shown, not_exported=tuple(not_exported), **facts)


def _no_limits(run: VirtualRun) -> VirtualRun:
    return dataclasses.replace(run, stages=tuple(dataclasses.replace(stage, max_num_seqs=None) for stage in run.stages))


def _with_samples(run: VirtualRun, samples: Iterable[EngineSample | None]) -> VirtualRun:
    ticks = (dataclasses.replace(tick, engine=sample) for tick, sample in zip(run.ticks, samples, strict=False))
    return dataclasses.replace(run, ticks=tuple(ticks))


def _with_facts(run: VirtualRun, **changes: Any) -> VirtualRun:
    facts: EngineFacts | None = run.header.engine
    known = None if facts is None else dataclasses.replace(facts, **changes)
    return dataclasses.replace(run, header=dataclasses.replace(run.header, engine=known))


def engine_samples(ticks: Sequence[Tick]) -> list[EngineSample]:
    """Return each sample of some ticks once, in order of time."""
    found: list[EngineSample] = []
    for tick in ticks:
        if tick.engine is not None and (not found or tick.engine is not found[-1]):
            found.append(tick.engine)
    return found
