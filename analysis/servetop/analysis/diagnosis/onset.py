"""Whether the cause of a verdict began at the onset that is known, or earlier."""

from __future__ import annotations

import numpy as np

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.evidence import knows_every_replica
from servetop.analysis.diagnosis.kept_load import CLEAR_SHARE, share_kept
from servetop.analysis.diagnosis.overload import QUEUES
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, RunVerdict
from servetop.analysis.engine_gauges import KV_FULL
from servetop.core.text.formats import clock

_SLOW = 0.5
"""95th percentile of TTFT relative to its objective, above which slow prefills look like a queue."""
_EARLY = 10.0
"""Seconds before an onset from which a sign of the same cause is another beginning."""


def onset_text(run: RunRecord, verdict: RunVerdict) -> str:
    """Return the onset, ` from 0:54`; ` by 0:54` if the cause may be older; empty without one."""
    if verdict.onset is None or _is_unseen(run, verdict):
        return ""
    since = "by" if _began_before(run, verdict, verdict.onset) else "from"
    return f" {since} {clock(verdict.onset)}"


def _is_unseen(run: RunRecord, verdict: RunVerdict) -> bool:
    """Whether no queue shows when an overload began.

    Only requests in flight show it, which may be a queue at a replica without metrics; or requests wait for their
    first token where the engine exports no queue, and that took them long before, so that slow prefills may be all.
    """
    main = verdict.main
    if main is None:
        return False
    if not any(main.first(kind) for kind in QUEUES):
        return verdict.cause is RunCause.UNKNOWN and not knows_every_replica(run)
    return main.first(EpisodeKind.QUEUE) is None and _was_slow(run, verdict.onset or main.begin)


def _was_slow(run: RunRecord, onset: float) -> bool:
    """Whether TTFT was near its objective in the ten seconds that ended five before a time."""
    first, stop = (run.history.first_from(max(onset - before, 0.0)) for before in (1.5 * _EARLY, 0.5 * _EARLY))
    return run.history.histogram("ttft_due", start=first, stop=stop).percentile(95) > _SLOW * run.ttft_objective


def _began_before(run: RunRecord, verdict: RunVerdict, onset: float) -> bool:
    """Whether the same load shows signs of the cause `_EARLY` before its onset, so that no start can be named."""
    stages = [stage.at for stage in run.loads if stage.at <= onset]
    first, stop = (run.history.first_from(max(stages, default=0.0)), run.history.up_to(onset - _EARLY))
    if verdict.cause is RunCause.STALL:
        return stop > first and _shows_pause(run, first, stop, before=onset - _EARLY)
    if verdict.cause is RunCause.FAILING:
        return bool(run.history.column("failed", start=min(first, stop), stop=stop).any())
    if verdict.main is None:
        return False
    if all(each.kind is EpisodeKind.IN_FLIGHT for each in verdict.main.episodes):  # known to some twenty seconds
        stop = run.history.first_from(onset)
    return run.sees_little or (bool(stages) and stop > first and _shows_overload(run, first, stop))


def _shows_pause(run: RunRecord, first: int, stop: int, *, before: float) -> bool:
    """Whether ticks have a time without a token, whatever explains it, or requests that missed their objectives."""
    seen = any(each.begin < before for each in run.of_kind(EpisodeKind.STALL))
    late = run.share_in_time_of(first, stop) < CLEAR_SHARE
    return seen or late or share_kept(run, first, stop) < CLEAR_SHARE


def _shows_overload(run: RunRecord, first: int, stop: int) -> bool:
    """Whether ticks show a short queue, or full KV blocks.

    Where waiting requests are not known of every replica, whether a request missed the objective on TTFT.
    """
    waiting = run.history.column("waiting", start=first, stop=stop)
    if (not knows_every_replica(run) or np.isnan(waiting).all()) and run.share_in_time_of(first, stop) < 1:
        return True
    return bool((waiting > SHORT_QUEUE).any() or (run.kv_usage(first, stop) >= KV_FULL).any())
