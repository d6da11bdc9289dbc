"""What was observed of a run: every statement of its judgement needs some of these observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from servetop.analysis.diagnosis.observation import Observation
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.signals import replica_count

_COLUMNS: Mapping[Observation, tuple[str, ...]] = {
    Observation.QUEUE: ("waiting",),
    Observation.RUNNING: ("running",),
    Observation.KV: ("kv_usage", "kv_blocks_used"),
    Observation.PREEMPTIONS: ("preemptions",),
    Observation.PREFIX_CACHE: ("prefix_cache_queries",),
    Observation.ENGINE_TTFT: ("engine_first_token_seconds",),
}
"""The columns of ticks of each observation of the engine; one of them is enough."""
_COUNTS: Mapping[Observation, str] = {
    Observation.TTFT: "first_tokens",
    Observation.COMPLETIONS: "ok",
    Observation.FAILURES: "failed",
    Observation.IN_FLIGHT: "in_flight",
    Observation.CLIENT_QUEUE: "queued",
}
"""The columns of the client's observations, which were made if any value is not 0."""


def observed(run: RunRecord) -> frozenset[Observation]:
    """Return what is known about a run, in any of its ticks; of a steady window only `kept_load` can tell."""
    found = {each for each, names in _COLUMNS.items() if any(_known(run, name).size for name in names)}
    found |= {each for each, name in _COUNTS.items() if _known(run, name).any()}
    facts = run.header.engine
    found |= {each for each, known in _FACTS.items() if known(run)}
    if facts is not None and facts.kv_blocks_total:
        found.add(Observation.KV_BLOCKS)
    if run.header.config.workload.stream and Observation.TTFT in found:
        found.add(Observation.FIRST_TOKENS)
    return frozenset(found)


def knows_batch_limit(run: RunRecord) -> bool:
    """Whether the engine exports its batch limit, or the run set it."""
    facts = run.header.engine
    set_by_run = any(stage.max_num_seqs is not None for stage in run.stages)
    return set_by_run or bool(facts and facts.max_num_seqs) or bool(_known(run, "max_num_seqs").size)


def knows_every_replica(run: RunRecord) -> bool:
    """Whether no server of the run is without metrics: the sum of the others does not include it."""
    count = replica_count(run.header.engine)
    return count < 2 or len({each.replica for each in run.replica_samples}) == count


def seen_replicas(run: RunRecord) -> int:
    """Return the number of servers whose sequences the engine's samples add up; without any sample, of all."""
    seen = len({each.replica for each in run.replica_samples})
    return seen or replica_count(run.header.engine)


_FACTS: Mapping[Observation, Callable[[RunRecord], bool]] = {
    Observation.BATCH_LIMIT: knows_batch_limit,
    Observation.MANAGED: lambda run: run.header.config.engine.url is None,
    Observation.GPU: lambda run: any(tick.gpus for tick in run.history.ticks[-1:]),
    Observation.REPLICAS: knows_every_replica,
    Observation.TARGET_RATE: lambda run: bool(np.isfinite(run.history.column("request_rate")).any()),
    Observation.OBJECTIVES: lambda run: bool(run.header.config.goodput),
}


def _known(run: RunRecord, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    values = run.history.column(name)
    return values[~np.isnan(values)]
