"""When the limit of an overload began to keep requests waiting."""

from __future__ import annotations

import math

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.overload import Limit, Overload
from servetop.analysis.diagnosis.replica_limits import ReplicaLimits

_TOGETHER = 2.0
"""Seconds between a limit and the queue behind it that are one onset."""


def overload_onset(limit: Limit, main: Overload, replicas: ReplicaLimits | None) -> float:
    """Return the second of the run in which the queue or earlier preemptions began, or just before them the cause.

    Of long prompts it is the first one. A full batch is the limit from when it is full; if only some replicas are
    limited, that of the replica that is named.
    """
    long, preempting = main.first(EpisodeKind.LONG_PROMPTS), main.first(EpisodeKind.PREEMPTIONS)
    if limit is Limit.LONG_PROMPTS and long is not None:
        return long.begin
    onset = main.onset
    if limit is Limit.KV and preempting is not None:
        onset = min(onset, preempting.begin)
    if limit is Limit.BATCH:
        onset = max(onset, _full_since(main, replicas))
    return main.begin if onset - main.begin <= _TOGETHER else onset


def _full_since(main: Overload, replicas: ReplicaLimits | None) -> float:
    """Return when the batch was full first, seconds; -inf if that is unknown. The sum of several batches is later."""
    if replicas is not None and replicas.uneven:
        since = replicas.limited[0].full_since
        return -math.inf if math.isnan(since) else since
    full = main.first(EpisodeKind.BATCH)
    return -math.inf if full is None else full.begin
