"""The limit of an overload in words, from the strongest statement to the weakest that is true."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from servetop.analysis.diagnosis import clauses
from servetop.analysis.diagnosis.clauses import Part, Phrase
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.evidence import observed
from servetop.analysis.diagnosis.observation import Observation
from servetop.analysis.diagnosis.overload import Overload, full_batch, has_room
from servetop.analysis.diagnosis.overload_rates import fitting_sequences, holds_too_few
from servetop.analysis.diagnosis.replica_text import replica_parts
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, RunVerdict

_FULL_ANYWAY = ": neither KV blocks nor the batch were full for most of the time"


def rate_text(run: RunRecord, at: float) -> str:
    """Return the target rate in force at a time, such as ` at 8.0 req/s`; empty in a closed loop."""
    target = run.rate_at(at)
    return f" at {target:.1f} req/s" if math.isfinite(target) else ""


def limit_parts(run: RunRecord, verdict: RunVerdict, main: Overload, begin: float) -> Sequence[Part]:
    """Return what limits the engine from `begin` seconds on, and for a full cache what it holds."""
    rate = rate_text(run, begin)
    weakest = _unexplained(run, main, rate)
    facts, replicas = run.header.engine, verdict.replicas
    if facts is not None and replicas is not None and replicas.limited and verdict.cause is not RunCause.LONG_PROMPTS:
        return replica_parts(replicas, facts.replica_urls) or [weakest]
    if verdict.cause is RunCause.KV:
        return [[Phrase(clauses.KV, f"the KV cache fills{rate}"), *weakest], _holding(run, verdict, main)]
    if verdict.cause is RunCause.BATCH:
        return [[*_batch(run, main, rate), *weakest]]
    if verdict.cause is RunCause.LONG_PROMPTS:
        text = f"longer prompts arrive{rate}, and requests wait behind their prefill"
        return [[Phrase(clauses.LONG_PROMPTS, text), *weakest]]
    if verdict.cause is RunCause.RATE:
        text = f"requests arrive faster than the engine serves them{rate}, with free KV blocks and batch slots"
        return [[Phrase(clauses.RATE, text), *weakest]]
    return [weakest]


def _batch(run: RunRecord, main: Overload, rate: str) -> Sequence[Phrase]:
    episode = full_batch(main, run.history, run.until)
    if episode is None or math.isnan(episode.batch):
        return [Phrase(clauses.BATCH_FULL, f"the batch is full{rate}")]
    size = f"{episode.batch:.0f}"
    if episode.inferred:
        text = f"the engine runs at most {size} at once{rate} while requests wait: a batch limit of about {size}"
        return [Phrase(clauses.BATCH_INFERRED, text)]
    return [Phrase(clauses.BATCH_FULL, f"the batch of {size} is full{rate}")]


def _holding(run: RunRecord, verdict: RunVerdict, main: Overload) -> Sequence[Phrase]:
    """Return how many sequences the full cache holds; beside its blocks only if these explain the number."""
    facts, capacity = run.header.engine, verdict.capacity
    if capacity is None or math.isnan(capacity.running) or run.sees_little:
        return []
    count = f"about {capacity.running:.0f} sequences"
    held = Phrase(clauses.KV_SEQUENCES, f"it holds {count}")
    if facts is None or not facts.kv_blocks_total:
        return [held]
    if holds_too_few(run, main):
        expected = f"{fitting_sequences(run):.0f} that its {facts.kv_blocks_total:,} blocks should hold"
        text = f"it holds {count}, of the {expected}"
        return [Phrase(clauses.KV_HOLDS, text), held]
    return [Phrase(clauses.KV_HOLDS, f"its {facts.kv_blocks_total:,} blocks hold {count}"), held]


def _unexplained(run: RunRecord, main: Overload, rate: str) -> Sequence[Phrase]:
    """Return the weaker statements: what waits or grows, and what is missing to tell why."""
    reason = _missing(run, main)
    waits = f"which limit holds them is unknown{reason}"
    found = []
    if main.first(EpisodeKind.QUEUE) is not None or main.first(EpisodeKind.BATCH) is not None:
        text = f"the queue grows{rate}; which limit holds it is unknown{reason}"
        found.append(Phrase(clauses.QUEUE_UNEXPLAINED, text))
    if main.first(EpisodeKind.AWAITING) is not None or not rate:  # in a closed loop no more arrive than complete
        found.append(Phrase(clauses.AWAITING_UNEXPLAINED, f"requests wait for their first token{rate}; {waits}"))
    return [*found, Phrase(clauses.ARRIVE_FASTER, f"more requests arrive than complete{rate}; {waits}")]


def _missing(run: RunRecord, main: Overload) -> str:
    """Return which metrics the engine does not export, without which the limit cannot be named; may be empty."""
    known = observed(run)
    if Observation.REPLICAS not in known and run.replica_samples:
        return ": a replica has no metrics"
    if np.isnan(run.history.column("scrape_end")).all():
        return ": the engine exports no metrics"
    wanted = {
        Observation.QUEUE: "queue",
        Observation.RUNNING: "running count",
        Observation.KV: "KV usage",
        Observation.BATCH_LIMIT: "batch limit",
    }
    absent = [name for each, name in wanted.items() if each not in known]
    if absent:
        return f": the engine exports no {' and no '.join(absent)}"
    return _FULL_ANYWAY if has_room(main, run.history, run.header.engine, until=run.until) else ""
