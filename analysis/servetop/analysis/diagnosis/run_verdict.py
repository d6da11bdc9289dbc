"""The verdict of a whole run: what limited it, from when on, and which load the engine sustains."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from servetop.analysis.diagnosis.capacity import KEPT_SHARE, Capacity
from servetop.analysis.diagnosis.claimed_rates import claimed_rates
from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.held_back import cold_start_end, held_back_since, held_between
from servetop.analysis.diagnosis.kept_load import kept_rate, kept_up, proves_headroom, share_kept
from servetop.analysis.diagnosis.overload import Limit, Overload, limit_of, overloads
from servetop.analysis.diagnosis.overload_intervals import overload_intervals
from servetop.analysis.diagnosis.overload_onset import overload_onset
from servetop.analysis.diagnosis.overload_rates import advised_batch, overload_capacity
from servetop.analysis.diagnosis.passing_overload import (
    is_long,
    length,
    passed,
    shows_limit,
    stalls_apart_from,
    stalls_caused,
    was_severe,
)
from servetop.analysis.diagnosis.rate_interval import RateInterval
from servetop.analysis.diagnosis.replica_limits import ReplicaLimits, limit_is_elsewhere, replica_limits
from servetop.analysis.diagnosis.run_record import RunRecord, run_failure
from servetop.analysis.diagnosis.worst_ttft import WorstTtft, worst_ttft
from servetop.analysis.trust.live_trust import live_trust
from servetop.core.errors import ExitCode
from servetop.core.tick import TICK_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    """What limited a run; times in seconds of the run, rates in requests/s, None if unknown or not applicable."""

    cause: RunCause
    onset: float | None = None
    """When the cause began."""
    until: float | None = None
    """When it ended; None if it lasted to the end of the run."""
    onset_rate: float | None = None
    """The target rate at the onset; None in a closed loop."""
    preemptions: float | None = None
    """During the overload, else over the whole run; None if not exported."""
    worst_ttft: WorstTtft | None = None
    """Over the whole load and its drain, without a cold start: a queue is felt until its last request is served."""
    capacity: Capacity | None = None
    """None if requests never waited long enough; an upper bound if a batch had not drained at the end of the run."""
    sustainable: float | None = None
    """The largest rate that keeps `objective`, else the capacity; the highest rate offered if nothing limited it."""
    knee: float | None = None
    """The rate above which half of the requests miss the objective (DEFAULT_OBJECTIVE without one)."""
    sustainable_interval: RateInterval | None = None
    """Where an estimated rate lies with a probability of 90 %; None for a lower bound."""
    sustainable_range: RateInterval | None = None  # the same with a probability of 99 %
    knee_interval: RateInterval | None = None
    is_lower_bound: bool = False
    """Whether `sustainable` is a rate that was kept, and the largest may be higher."""
    objective: float | None = None
    """The objective on TTFT, seconds; None without one."""
    advised_batch: int | None = None
    """The batch size to try; None if there is no advice on it."""
    main: Overload | None = None
    """The overload that decides; None without one."""
    others: tuple[Overload, ...] = ()
    """All other overloads, in order of time."""
    client_late: bool = False
    """Whether the client was late too, which is a small part of TTFT."""
    replicas: ReplicaLimits | None = None
    """What limits each replica during the overload; None for a single server, or without their metrics."""
    traffic: str = ""
    """How many of the requests in the engine are those of other clients."""
    network: str = ""
    """The evidence that requests wait between client and engine, in words; empty without any."""
    passed: Overload | None = None
    """An overload that did no harm, without which there would be headroom; None without one."""
    cold_until: float | None = None
    """When a cold start ended: a time without the objectives, after which the engine kept up with the same load."""


FAILED_SHARE = 0.01
"""Fraction of failed requests from which a run counts as failing."""
FAILED_BESIDE_OVERLOAD = 0.05
"""The same for a run that was overloaded."""
LATE_SHARE = 0.10
"""Fraction of the load's time with a late client from which the figures describe the client."""
CLIENT_TOO = "the client was late too"
"""What is said of a late client beside an overload of the engine."""
_DYING = 10.0
"""Seconds within which an engine's failure is noted."""


class RunCause(StrEnum):
    """What limited a run."""

    NO_LOAD = "no load"
    ENGINE_FAILED = "engine failed"
    FAILING = "failing"
    OTHERS = "other traffic"
    CLIENT = "client-bound"
    NETWORK = "network-bound"
    """Requests wait, or their tokens, between client and engine."""
    KV = Limit.KV.value
    BATCH = Limit.BATCH.value
    RATE = Limit.RATE.value
    LONG_PROMPTS = Limit.LONG_PROMPTS.value
    UNKNOWN = Limit.UNKNOWN.value
    CONCURRENCY = "concurrency-limited"
    """The user's own limit of requests in flight holds them back at the client."""
    STALL = "stalled"
    MISSED = "objectives missed"
    HEADROOM = "headroom"
    UNCLEAR = "unclear"
    """Nothing limited it visibly, but too little was seen to say that the engine keeps up."""


def run_verdict(run: RunRecord) -> RunVerdict:
    """Judge a run: failures first, then other clients of the server, a late client, and the longest overload.

    A late client is mentioned after an overload of the engine, unless users felt mainly the client.
    """
    if run.end is not None and run.end.exit_code == ExitCode.ENGINE_FAILED:
        return RunVerdict(cause=RunCause.ENGINE_FAILED, onset=_died_at(run, failed_at(run)))
    if math.isnan(run.load_since):
        return RunVerdict(cause=RunCause.NO_LOAD)
    overloaded = longest_overload(run, loaded=run.until - run.load_since)
    failing = run.of_kind(EpisodeKind.FAILING)
    if (failing or overloaded is None) and _fails(run, overloaded):
        return _simple(RunCause.FAILING, failing, run)
    trust = live_trust(run.history, run.history.first_from(run.load_since), len(run.history))
    attached = run.header.config.engine.url is not None
    if attached and trust.serves_others:
        return replace(without_overload(run), cause=RunCause.OTHERS, sustainable=None, traffic=trust.other_requests)
    late = run.of_kind(EpisodeKind.CLIENT) if trust.client_is_late else []
    client_late = bool(late) and _is_late(late, run)
    if client_late and (overloaded is None or trust.lateness_is_felt):
        return _simple(RunCause.CLIENT, late, run)
    main = None if overloaded is None else overloaded.main
    held = held_between(run, trust) if attached and not (main and shows_limit(run, main)) else None
    if held is not None:
        return replace(without_overload(run), cause=RunCause.NETWORK, sustainable=None, network=held)
    stalls = stalls_apart_from(run, main)
    paused = main is not None and stalls_caused(run, main, stalls)
    cold_until = None if overloaded is None or paused else cold_start_end(run, main)
    harmless = overloaded is not None and main is not None and passed(run, main, overloaded.others)
    if overloaded is not None and not paused and cold_until is None and not harmless:
        return replace(overloaded, client_late=client_late)
    if stalls:
        return _simple(RunCause.STALL, stalls, run)
    found = without_overload(run, cold_until=cold_until)
    found = without_overload(run) if found.cause is RunCause.MISSED else found  # not at its start only
    if main is None or not was_severe(run, main) or cold_until is not None or found.cause is not RunCause.HEADROOM:
        return found
    return replace(found, cause=RunCause.UNCLEAR, sustainable=None, is_lower_bound=False, passed=main)


def longest_overload(run: RunRecord, *, loaded: float) -> RunVerdict | None:
    """Judge the longest overload of a run; None if none lasted for a tenth of the `loaded` seconds."""
    groups = overloads(run.episodes)
    long = [group for group in groups if is_long(run, group, loaded=loaded)]
    return _overloaded(max(long, key=lambda group: length(run, group)), groups, run) if long else None


def failed_at(run: RunRecord) -> float:
    """Return when the failure of the engine was noted; without a note, the end of the run."""
    failure = run_failure(run.notes)
    if failure is not None:
        return failure.at
    return run.until if run.end is None else run.end.at


def _died_at(run: RunRecord, noted_at: float) -> float:
    """Return when requests began to fail, or to get no more tokens, because of the engine's failure noted at a time."""
    kinds = (EpisodeKind.FAILING, EpisodeKind.STALL)
    last = [each for each in run.episodes if each.kind in kinds and each.overlaps(noted_at - TICK_SECONDS, noted_at)]
    return min([noted_at, *(each.begin for each in last if each.begin >= noted_at - _DYING)])


def _fails(run: RunRecord, overloaded: RunVerdict | None) -> bool:
    """Whether failures decide the verdict: a few during an overload do not explain its queue."""
    failed, ok = run.count("failed"), run.count("ok")
    return failed > 0 and failed >= (FAILED_SHARE if overloaded is None else FAILED_BESIDE_OVERLOAD) * (failed + ok)


def _is_late(episodes: list[Episode], run: RunRecord) -> bool:
    loaded = max(run.until - run.load_since, TICK_SECONDS)
    return sum(each.seconds(run.until) for each in episodes) >= LATE_SHARE * loaded


def _simple(cause: RunCause, episodes: list[Episode], run: RunRecord) -> RunVerdict:
    onset = min((each.begin for each in episodes), default=None)
    ends = [each.end for each in episodes]
    return RunVerdict(
        cause=cause,
        onset=onset,
        until=None if None in ends else max((end for end in ends if end is not None), default=None),
        onset_rate=None if onset is None else _open_rate(run, onset),
        preemptions=_known(run.total("preemptions")),
        worst_ttft=worst_ttft(run, run.load_since, run.until),
    )


def _overloaded(main: Overload, groups: list[Overload], run: RunRecord) -> RunVerdict:
    seen = limit_of(main, run.history, run.header.engine, until=run.until)
    together = Limit.UNKNOWN if limit_is_elsewhere(run, main) else seen
    replicas = replica_limits(run, main)
    limit = _limit_of_replicas(together, replicas)
    uneven = replicas is not None and replicas.uneven
    pooled = replicas is None or (limit is together and not uneven)
    capacity = overload_capacity(limit, main, run) if pooled else None
    rates = claimed_rates(limit, capacity, main, run)
    intervals = overload_intervals(rates, main, run)
    onset = overload_onset(limit, main, replicas)
    return RunVerdict(
        cause=RunCause(limit.value),
        onset=onset,
        until=main.end,
        onset_rate=_open_rate(run, onset),
        preemptions=_known(run.total_of_loads("preemptions", main.begin, run.until if main.end is None else main.end)),
        worst_ttft=worst_ttft(run, run.load_since, run.until),
        capacity=capacity,
        sustainable=rates.sustainable,
        sustainable_interval=intervals.sustainable,
        sustainable_range=intervals.sustainable_range,
        is_lower_bound=rates.is_lower_bound,
        knee=rates.knee,
        knee_interval=intervals.knee,
        objective=_known(run.ttft_objective),
        advised_batch=advised_batch(limit, main, run) if pooled else None,
        main=main,
        replicas=replicas,
        others=tuple(group for group in groups if group is not main),
    )


def _limit_of_replicas(together: Limit, replicas: ReplicaLimits | None) -> Limit:
    """The limit of the replica that is overloaded longest: sums over all replicas hide that one of them is full."""
    found = None if replicas is None else replicas.limit
    return together if found is None or Limit.UNKNOWN is found or together is Limit.LONG_PROMPTS else found


def without_overload(run: RunRecord, *, cold_until: float | None = None) -> RunVerdict:
    """Judge a run whose engine was not overloaded, or only in a cold start that ended at `cold_until` seconds."""
    missed = _misses(run, cold_until)
    if missed and cold_until is None:
        cold_until = cold_start_end(run, None)
        if cold_until is not None and _misses(run, cold_until):
            cold_until = None
        missed = _misses(run, cold_until)
    since = run.load_since if cold_until is None else cold_until
    held_back = held_back_since(run)
    keeps_up = not missed and held_back is None and kept_up(run)
    kept = kept_rate(run, at=run.until) if keeps_up else None
    cause = RunCause.MISSED if missed else RunCause.UNCLEAR
    if keeps_up and proves_headroom(run, kept, since=since):
        cause = RunCause.HEADROOM
    elif held_back is not None:
        cause = RunCause.CONCURRENCY
    return RunVerdict(
        cause=cause,
        onset=held_back,
        onset_rate=None if held_back is None else _open_rate(run, held_back),
        preemptions=_known(run.total("preemptions")),
        worst_ttft=worst_ttft(run, since, run.until),
        sustainable=kept,
        is_lower_bound=kept is not None,
        objective=_known(run.ttft_objective),
        cold_until=cold_until,
    )


def _misses(run: RunRecord, cold_until: float | None) -> bool:
    first = run.history.first_from(run.load_since if cold_until is None else cold_until)
    return share_kept(run, first, len(run.history)) < KEPT_SHARE


def _open_rate(run: RunRecord, at: float) -> float | None:
    rate = run.rate_at(at)
    return rate if math.isfinite(rate) else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
