"""Checks statements about an overload whose cause is not named, a load that is held back, a start, and a throttle."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from servetop.core.arrays import IntArray
from tests.judgement.known_truth import SHARE_KEPT, KnownTruth
from tests.judgement.live_checks import STALE, WINDOW, full_there_now, near, waits_there_now
from tests.judgement.queue_truth import LASTING, SHORT_QUEUE
from tests.judgement.scenario import Cause
from tests.judgement.statements import Statement, seconds_of

Check = Callable[[Statement, KnownTruth], bool | None]
UNNAMED_OVERLOADS = ("overloaded", "engine or network overloaded")
"""The names of an overload whose limit is unknown."""
_SOON = 2.0
"""Seconds by which a time may be off."""
_FEW = 0.25
"""Fraction of the most requests without a first token that are few of them."""


def overload_verdict(cause: str, truth: KnownTruth) -> bool | None:
    """Whether the run is overloaded: a headline that names no cause; None for those that claim nothing."""
    if cause == "engine or network overloaded" and truth.cause is Cause.NETWORK:
        return True if truth.state.share_met() < SHARE_KEPT else None
    if cause in UNNAMED_OVERLOADS:
        if not truth.overloaded and _never_ended(truth):
            return None
        return True if truth.overloaded else None if truth.disturbed and truth.cause is not Cause.NETWORK else False
    return None


def _never_ended(truth: KnownTruth) -> bool:
    """Whether a queue lasted until the end of a load that the engine does not sustain, without harm up to then."""
    queues = truth.state.queues
    return bool(queues) and queues[-1].until >= truth.state.load_end - 1.0 and truth.kept_at(truth.last_rate) is False


def felt_onsets(truth: KnownTruth, at: float) -> list[float]:
    """Times from which more than 5 % of the requests of five seconds miss their objectives; none at a sustained rate.

    An engine computes the prompts of requests in its batch one after the other: these wait for their first token as
    well, before any waits for the batch. The rate is that in force at a time, in seconds of the run.
    """
    rates = (each.client.gauges.request_rate for each in truth.state.run.ticks if each.start <= at <= each.end)
    if truth.kept_at(next(rates, None) or 0.0) is not False:
        return []
    times = np.arange(0.0, truth.state.load_end, 1.0)
    missed = np.array([truth.state.share_met(each, each + LASTING) < SHARE_KEPT for each in times.tolist()])
    return [float(each) for each in times[missed & ~np.append(False, missed[:-1])]]


def _limit_unknown(said: Statement, truth: KnownTruth) -> bool | None:
    """What is known without the limit: that requests wait, or that more arrive than complete."""
    state = truth.state
    waits = bool(truth.overloaded or truth.disturbed or state.waiting.max(initial=0) > SHORT_QUEUE)
    if said.values["what"] == "the queue grows":
        return waits
    return True if truth.overloaded or state.grew else None if waits or truth.cause is Cause.NETWORK else False


def _unstarted(said: Statement, truth: KnownTruth) -> bool:
    if said.live:  # the most so far
        at, count, unstarted = said.at or 0.0, said.number("count"), truth.state.unstarted
        part, before = (unstarted[truth.state.within(start, at)] for start in (at - WINDOW, 0.0))
        return bool(0.75 * part.min(initial=100_000) - 3 <= count <= 1.25 * before.max(initial=0) + 3)
    if said.values["at"] is None:
        return bool(said.number("count") >= 0.75 * truth.state.unstarted.max(initial=0) - 3)
    return _counted(said, truth, truth.state.unstarted)


def _in_flight_grow(said: Statement, truth: KnownTruth) -> bool:
    return _counted(said, truth, truth.state.in_flight)


def _counted(said: Statement, truth: KnownTruth, column: IntArray) -> bool:
    """Whether the column had this value near the time of the statement."""
    at, count = said.said_at or 0.0, said.number("count")
    part = column[truth.state.within(at - _SOON, at + _SOON)]
    return bool(0.75 * part.min(initial=100_000) - 3 <= count <= 1.25 * part.max(initial=0) + 3)


def _all_started(said: Statement, truth: KnownTruth) -> bool | None:
    at = said.at
    if at is None:
        return None
    state = truth.state
    few = max(2 * SHORT_QUEUE, _FEW * int(state.unstarted[state.times <= at].max(initial=0)))
    part = state.unstarted[state.within(at + _SOON, at + 2 * _SOON)]
    return bool((part > few).mean() < 0.5) if part.size else True


def _batch_limit(said: Statement, truth: KnownTruth) -> bool:
    """Whether an inferred limit is right within a quarter, and the batch was full then."""
    facts, at, size = truth.state.run.header.engine, said.at or 0.0, said.number("size")
    limit = (facts.max_num_seqs or 0) if facts else 0
    if size in truth.other_limits:
        return bool(truth.state.waiting[truth.state.within(at - STALE, at + 2 * STALE)].max(initial=0) > 0)
    known = any(near(size, count * limit) for count in {1, truth.replicas})
    return known and truth.state.fullest(at - STALE, at + 2 * STALE) >= 0.9 * limit


def kept_up_after(_: Statement, truth: KnownTruth) -> bool | None:
    """Whether the second half of the load met its objectives, after a cold start."""
    met = truth.state.share_met(truth.state.load_end / 2)
    return False if truth.outgrown or met < 0.9 else True if met >= SHARE_KEPT else None


def _cold_start(said: Statement, truth: KnownTruth) -> bool | None:
    """False if requests miss their objectives after it as well, or if the rate is not sustained."""
    met = truth.state.share_met(seconds_of(said.values["until"]) + _SOON)
    return False if met < 0.9 or truth.kept_at(truth.last_rate) is False else None


def _queue_not_known(said: Statement, truth: KnownTruth) -> bool:
    """Histograms know each time within two percent; nothing is claimed of the engine."""
    low, high = (100 * (1 - truth.state.share_met(slack=slack)) for slack in (1.02, 0.98))
    return low - 2 <= said.number("percent") <= high + 2


def _throttled(said: Statement, truth: KnownTruth) -> bool:
    gpus = truth.scenario.plan.gpus
    if gpus is None or not math.isfinite(gpus.throttle_from):
        return False
    return near(said.number("seconds"), truth.state.run.ticks[-1].end - gpus.throttle_from, absolute=_SOON)


def _held(said: Statement, truth: KnownTruth) -> bool:
    limits = {stage.max_concurrency for stage in truth.state.run.stages}
    queued = max((tick.client.gauges.queued for tick in truth.state.run.ticks), default=0)  # some are never sent
    right = said.values["limit"] is None or said.number("limit") in limits
    return right and near(said.number("count"), queued, absolute=3)


def _no_more_offered(said: Statement, truth: KnownTruth) -> bool:
    limits = [stage.max_concurrency for stage in truth.state.run.stages if stage.request_rate is not None]
    return None not in limits and bool(truth.state.in_flight.max(initial=0) <= max(filter(None, limits), default=0))


def _cancelled(said: Statement, truth: KnownTruth) -> bool:
    return near(said.number("count"), truth.left, relative=0.02, absolute=2)


def _raise_limit(said: Statement, truth: KnownTruth) -> bool:
    return truth.state.held


def _lower_concurrency(said: Statement, truth: KnownTruth) -> bool | None:
    return None if truth.state.closed else False


def _replica(said: Statement, truth: KnownTruth) -> bool | None:
    """Whether the replica is one that differs from the others, if one does."""
    number, settings = said.values["number"], truth.scenario.plan.replica_settings
    return None if number is None or not settings else int(number) - 1 in settings


UNNAMED_CHECKS: dict[str, Check] = {
    "kept up after": kept_up_after,
    "completed": lambda _, truth: truth.left <= 2,
    "cancelled": _cancelled,
    "batch limit": _batch_limit,
    "limit unknown": _limit_unknown,
    "cold start": _cold_start,
    "queue not known": _queue_not_known,
    "throttled": _throttled,
    "held": _held,
    "no more offered": _no_more_offered,
    "unstarted": _unstarted,
    "in flight grow": _in_flight_grow,
    "all started": _all_started,
    "raise limit": _raise_limit,
    "lower concurrency": _lower_concurrency,
    "replica": _replica,
    "replica queue": lambda _, __: None,
    "replica blocks": lambda _, __: None,
    "replica advice": lambda _, truth: truth.replicas > 1,
    "longer run": lambda _, __: None,
    "waits there now": waits_there_now,
    "passed": lambda _, truth: truth.state.share_met() >= SHARE_KEPT and not truth.left,
    "restart": lambda _, truth: truth.usable_blocks < 1,
    "full there now": full_there_now,
    "replica advice now": lambda said, truth: ("concurrency" in (said.values["then"] or "")) == truth.state.closed,
}
"""The check of each of these patterns."""
