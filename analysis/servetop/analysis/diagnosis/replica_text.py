"""Several replicas in the story: which of them is limited, and by what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from servetop.analysis.diagnosis import clauses
from servetop.analysis.diagnosis.clauses import Part, Phrase
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.diagnosis.replica_limits import LimitedReplica, ReplicaLimits
from servetop.core.text.sanitize import sanitize_line


def at_replica(limits: ReplicaLimits | None) -> str:
    """Where the limit is, such as ` at replica 2 of 3`; empty if all replicas are limited, or if there is one."""
    if limits is None or not limits.uneven:
        return ""
    return f" at {_named(limits)} of {limits.count}"


def replica_parts(limits: ReplicaLimits, urls: Sequence[str]) -> Sequence[Part]:
    """Return which replicas are limited, and by what; empty if that is unknown."""
    worst = limits.limited[0]
    if worst.limit is Limit.UNKNOWN:
        return []
    same = all(each.limit is worst.limit and not abs(each.batch - worst.batch) > 0 for each in limits.limited)
    if not limits.uneven:
        who = f"each of {limits.count} replicas" if same else f"replica {worst.number + 1}"
    elif len(limits.limited) == 1:
        who = f"replica {worst.number + 1} of {limits.count} ({sanitize_line(urls[worst.number])})"
    else:
        who = f"{_named(limits)} of {limits.count}" if same else f"replica {worst.number + 1} of {limits.count}"
    return [Phrase(clauses.REPLICA, who), _limit_phrase(worst)]


def replica_queues(limits: ReplicaLimits | None) -> Iterable[Phrase]:
    """Yield how the queue is distributed over the replicas; nothing if all are alike, or if that is unknown."""
    if limits is None or not limits.uneven or any(math.isnan(each) for each in limits.most_waiting):
        return
    inside = {each.number for each in limits.limited}
    most, others = (max(limits.most_waiting[each] for each in part) for part in (inside, _others(limits)))
    yield Phrase(clauses.REPLICA_QUEUE, f"at most {most:,.0f} waiting at {_named(limits)}, {others:,.0f} elsewhere")


def replica_blocks(limits: ReplicaLimits | None) -> Iterable[Phrase]:
    """Yield the KV usage if that is the limit of some replicas; nothing if all are alike, or if it is unknown."""
    if limits is None or not limits.uneven or limits.limit is not Limit.KV:
        return
    if any(math.isnan(each) for each in limits.kv_peaks):
        return
    inside = {each.number for each in limits.limited}
    full, rest = (max(limits.kv_peaks[each] for each in part) for part in (inside, _others(limits)))
    yield Phrase(clauses.REPLICA_KV, f"KV blocks at most {full:.0%} in use at {_named(limits)}, {rest:.0%} elsewhere")


def replica_advice(limits: ReplicaLimits) -> Phrase:
    """Return what to try if only some replicas are limited: more replicas of the same load would not help them."""
    place = _named(limits)
    more = {Limit.KV: f"more KV memory for {place}", Limit.BATCH: f"a larger max_num_seqs for {place}"}
    first = more.get(limits.limited[0].limit, f"a lower rate for {place}")
    return Phrase(clauses.TRY_REPLICA, f"try {first}, or a load balancer that sends it less")


def _limit_phrase(replica: LimitedReplica) -> Phrase:
    size = f"{replica.batch:.0f}"
    if replica.limit is Limit.KV:
        return Phrase(clauses.KV, "the KV cache fills")
    if replica.limit is Limit.BATCH and replica.inferred:
        text = f"the engine runs at most {size} at once while requests wait: a batch limit of about {size}"
        return Phrase(clauses.BATCH_INFERRED, text)
    if replica.limit is Limit.BATCH:
        text = "the batch is full" if math.isnan(replica.batch) else f"the batch of {size} is full"
        return Phrase(clauses.BATCH_FULL, text)
    text = "requests arrive faster than the engine serves them, with free KV blocks and batch slots"
    return Phrase(clauses.RATE, text)


def _named(limits: ReplicaLimits) -> str:
    return replicas_named(each.number for each in limits.limited)


def replicas_named(indices: Iterable[int]) -> str:
    """Return the names of some replicas, such as `replicas 1 and 3`; `indices` count from 0."""
    numbers = sorted(each + 1 for each in indices)
    if len(numbers) == 1:
        return f"replica {numbers[0]}"
    return f"replicas {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _others(limits: ReplicaLimits) -> list[int]:
    inside = {each.number for each in limits.limited}
    return [each for each in range(limits.count) if each not in inside]
