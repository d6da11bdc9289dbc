"""Several replicas at one time of a run: at which of them requests wait, and what is full there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.diagnosis import live_clauses as clauses
from servetop.analysis.diagnosis.clauses import Phrase
from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.analysis.diagnosis.replica_text import replicas_named
from servetop.analysis.engine_gauges import KV_FULL, STALE_AFTER, kv_usage
from servetop.core.events import ReplicaSample

_MOST = 0.8
"""Least share of all waiting requests that wait at the busy replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyReplicas:
    """The replicas at which requests wait, while others have room."""

    samples: Sequence[ReplicaSample]
    count: int
    """The number of all replicas."""

    @property
    def name(self) -> str:
        """What they are called, such as `replica 2`."""
        return replicas_named(each.replica for each in self.samples)

    @property
    def waiting(self) -> float:
        """Requests that wait there."""
        return sum(each.waiting or 0.0 for each in self.samples)

    def full(self) -> Sequence[Phrase]:
        """Return what is full at all of them: KV blocks, or the batch; nothing if neither is known to be full."""
        if all(kv_usage(each) >= KV_FULL for each in self.samples):
            return [Phrase(clauses.REPLICA_KV, "KV blocks full there")]
        if all(each.max_num_seqs and (each.running or 0.0) >= each.max_num_seqs for each in self.samples):
            return [Phrase(clauses.REPLICA_BATCH, "batch full there")]
        return []


def busy_replicas(moment: Moment) -> BusyReplicas | None:
    """Return the replicas at which requests wait; None if they wait at all, at none, or if that is unknown."""
    count = 0 if moment.facts is None else len(moment.facts.replica_urls)
    newest = [each for each in moment.replicas if moment.stats.at - each.scrape_end <= STALE_AFTER]
    known = [each for each in newest if each.waiting is not None]
    if count < 2 or not moment.fresh or len(known) < count:
        return None
    queues = [each for each in known if (each.waiting or 0.0) > SHORT_QUEUE]
    busy = BusyReplicas(samples=queues, count=count)
    total = sum(each.waiting or 0.0 for each in known)
    return busy if 0 < len(queues) < count and busy.waiting >= _MOST * total else None
