"""The verdict of a whole run: what limited it, from when on, and which load the engine sustains."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from servetop.analysis.judgement.capacity import (
    KEPT_SHARE,
    Capacity,
    ServiceTimes,
    batch_service,
    capacity_of,
    prefill_capacity,
    prefill_service,
    sustainable_rate,
)
from servetop.analysis.judgement.detectors import WINDOW
from servetop.analysis.judgement.episode import Episode, EpisodeKind
from servetop.analysis.judgement.overload import Limit, Overload, limit_of, overloads
from servetop.analysis.judgement.run_record import RunRecord, run_failure
from servetop.analysis.judgement.signals import ticks_of, trailing_min
from servetop.analysis.judgement.worst_ttft import WorstTtft, worst_ttft
from servetop.analysis.verdicts.live_trust import live_trust
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
    """During the overload, else over the whole run."""
    capacity: Capacity | None = None
    """None if requests never waited long enough; an upper bound if a batch had not drained at the end of the run."""
    sustainable: float | None = None
    """The largest rate that keeps `objective`, else the capacity; the highest rate offered if nothing limited it."""
    knee: float | None = None
    """The rate above which half of the requests miss the objective (DEFAULT_OBJECTIVE without one)."""
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
    traffic: str = ""
    """How many of the requests in the engine are those of other clients."""


FAILED_SHARE = 0.01
"""Fraction of failed requests from which a run counts as failing."""
LATE_SHARE = 0.10
"""Fraction of the load's time with a late client from which the figures describe the client."""
CLIENT_TOO = "the client was late too"
"""What is said of a late client beside an overload of the engine."""
DEFAULT_OBJECTIVE = 0.5
"""Seconds of TTFT, for the knee of a run without an objective."""
_SHORTEST = 5.0
"""Seconds; shorter overloads do not decide the verdict of a run, unless they are _SHORTEST_SHARE of its load."""
_SHORTEST_SHARE = 0.1
_TOGETHER = 2.0
"""Seconds between a limit and the queue behind it that the verdict does not tell apart."""
_DYING = 10.0
"""Seconds within which the failure of an engine is noted."""


class RunCause(StrEnum):
    """What limited a run."""

    NO_LOAD = "no load"
    ENGINE_FAILED = "engine failed"
    FAILING = "failing"
    OTHERS = "other traffic"
    CLIENT = "client-bound"
    KV = Limit.KV.value
    BATCH = Limit.BATCH.value
    RATE = Limit.RATE.value
    LONG_PROMPTS = Limit.LONG_PROMPTS.value
    STALL = "stalled"
    HEADROOM = "headroom"


def run_verdict(run: RunRecord) -> RunVerdict:
    """Judge a run: failures first, then other clients of the server, a late client, and the longest overload.

    A late client is mentioned after an overload of the engine, unless users felt mainly the client.
    """
    if run.end is not None and run.end.exit_code == ExitCode.ENGINE_FAILED:
        return RunVerdict(cause=RunCause.ENGINE_FAILED, onset=_died_at(run, failed_at(run)))
    if math.isnan(run.load_since):
        return RunVerdict(cause=RunCause.NO_LOAD)
    failing = run.of_kind(EpisodeKind.FAILING)
    if failing and _fails(run):
        return _simple(RunCause.FAILING, failing, run)
    trust = live_trust(run.history, run.history.first_from(run.load_since), len(run.history))
    if run.header.config.engine.url is not None and trust.serves_others:
        return replace(_headroom(run), cause=RunCause.OTHERS, sustainable=None, traffic=trust.other_requests)
    late = run.of_kind(EpisodeKind.CLIENT) if trust.client_is_late else []
    client_late = bool(late) and _is_late(late, run)
    overloaded = longest_overload(run, loaded=run.until - run.load_since)
    if client_late and (overloaded is None or trust.lateness_is_felt):
        return _simple(RunCause.CLIENT, late, run)
    if overloaded is not None:
        return replace(overloaded, client_late=client_late)
    stalls = run.of_kind(EpisodeKind.STALL)
    return _simple(RunCause.STALL, stalls, run) if stalls else _headroom(run)


def longest_overload(run: RunRecord, *, loaded: float) -> RunVerdict | None:
    """Judge the longest overload of a run; None if none lasted for a tenth of the `loaded` seconds."""
    groups = overloads(run.episodes)
    shortest = min(_SHORTEST, _SHORTEST_SHARE * loaded)
    long = [group for group in groups if _length(group, run) >= shortest]
    return _overloaded(max(long, key=lambda group: _length(group, run)), groups, run) if long else None


def failed_at(run: RunRecord) -> float:
    """Return when the failure of the engine was noted; without a note, the end of the run."""
    failure = run_failure(run.notes)
    if failure is not None:
        return failure.at
    return run.until if run.end is None else run.end.at


def _died_at(run: RunRecord, noted_at: float) -> float:
    """When requests began to fail, or to get no more tokens, because of the engine's failure noted at a time."""
    kinds = (EpisodeKind.FAILING, EpisodeKind.STALL)
    last = [each for each in run.episodes if each.kind in kinds and each.overlaps(noted_at - TICK_SECONDS, noted_at)]
    return min([noted_at, *(each.begin for each in last if each.begin >= noted_at - _DYING)])


def _fails(run: RunRecord) -> bool:
    failed, ok = run.count("failed"), run.count("ok")
    return failed >= FAILED_SHARE * (failed + ok)


def _is_late(episodes: list[Episode], run: RunRecord) -> bool:
    loaded = max(run.until - run.load_since, TICK_SECONDS)
    return sum(each.seconds(run.until) for each in episodes) >= LATE_SHARE * loaded


def _simple(cause: RunCause, episodes: list[Episode], run: RunRecord) -> RunVerdict:
    onset = min(each.begin for each in episodes)
    ends = [each.end for each in episodes]
    return RunVerdict(
        cause=cause,
        onset=onset,
        until=None if None in ends else max(end for end in ends if end is not None),
        onset_rate=_open_rate(run, onset),
        preemptions=_known(run.total("preemptions")),
        worst_ttft=worst_ttft(run, run.load_since, run.until),
    )


def _overloaded(main: Overload, groups: list[Overload], run: RunRecord) -> RunVerdict:
    limit = limit_of(main, run.history, run.header.engine, until=run.until)
    until = run.until if main.end is None else main.end
    capacity = _capacity(limit, main, run)
    objective = _known(run.ttft_objective)
    sustainable, knee = (None, None) if capacity is None else _rates(limit, capacity, objective, run)
    onset = _onset(limit, main)
    return RunVerdict(
        cause=RunCause(limit.value),
        onset=onset,
        until=main.end,
        onset_rate=_open_rate(run, onset),
        preemptions=None if math.isnan(run.total("preemptions")) else main.total(EpisodeKind.PREEMPTIONS),
        worst_ttft=worst_ttft(run, main.begin, until),
        capacity=capacity,
        sustainable=sustainable,
        knee=knee,
        objective=objective,
        advised_batch=_advised_batch(limit, main, run),
        main=main,
        others=tuple(group for group in groups if group is not main),
    )


def _onset(limit: Limit, main: Overload) -> float:
    """When the queue or earlier preemptions began, or just before them the cause; of long prompts the first one."""
    long, preempting = main.first(EpisodeKind.LONG_PROMPTS), main.first(EpisodeKind.PREEMPTIONS)
    if limit is Limit.LONG_PROMPTS and long is not None:
        return long.begin
    onset = main.onset
    if limit is Limit.KV and preempting is not None:
        onset = min(onset, preempting.begin)
    return main.begin if onset - main.begin <= _TOGETHER else onset


def _headroom(run: RunRecord) -> RunVerdict:
    return RunVerdict(
        cause=RunCause.HEADROOM,
        preemptions=_known(run.total("preemptions")),
        worst_ttft=worst_ttft(run, run.load_since, run.until),
        sustainable=_kept_rate(run),
        is_lower_bound=True,
        objective=_known(run.ttft_objective),
    )


def _kept_rate(run: RunRecord) -> float | None:
    """The highest rate in force for at least WINDOW seconds; None in a closed loop, or if the objective was missed."""
    rates = trailing_min(run.history.column("request_rate"), ticks_of(WINDOW))
    finite = rates[np.isfinite(rates)]
    if not finite.size or run.share_in_time < KEPT_SHARE:
        return None
    return float(finite.max())


def _capacity(limit: Limit, main: Overload, run: RunRecord) -> Capacity | None:
    if limit is Limit.LONG_PROMPTS:
        return None
    return (prefill_capacity if limit is Limit.RATE else capacity_of)(main, run.history, run.until)


def _rates(
    limit: Limit, capacity: Capacity, objective: float | None, run: RunRecord
) -> tuple[float | None, float | None]:
    """The sustainable rate and the knee of an engine of this capacity; None if only a bound of it is known."""
    if capacity.is_upper_bound:
        return None, None
    times = _service(limit, capacity, run)
    if times is None:
        return capacity.rate, capacity.rate
    knee = sustainable_rate(times, capacity, max(objective or DEFAULT_OBJECTIVE, times.base), kept_share=0.5)
    return capacity.rate if objective is None else sustainable_rate(times, capacity, objective), knee


def _service(limit: Limit, capacity: Capacity, run: RunRecord) -> ServiceTimes | None:
    fit = prefill_service if limit is Limit.RATE else batch_service
    return fit(run.history, capacity, run.header.config.workload, run.until)


def _advised_batch(limit: Limit, main: Overload, run: RunRecord) -> int | None:
    if limit is Limit.KV:
        size = next((each for each in main.episodes if each.fits), None)
        smaller = size is not None and main.first(EpisodeKind.PREEMPTIONS) is not None and not size.fits >= size.batch
        return size.fits if size is not None and smaller else None
    episode = main.first(EpisodeKind.BATCH)
    if limit is not Limit.BATCH or episode is None:
        return None
    usage = _kv_peak(run, main)
    return None if math.isnan(usage) or usage <= 0 else larger_batch(episode.batch, usage)


def larger_batch(batch: float, usage: float) -> int | None:
    """Return the power of two times the batch size that fills the KV cache to at most 90 %; None if none is larger."""
    doublings = math.floor(math.log2(0.9 / usage)) if usage < 0.9 else 0
    return round(batch * 2 ** min(doublings, 3)) if doublings >= 1 else None


def _kv_peak(run: RunRecord, overload: Overload) -> float:
    until = run.until if overload.end is None else overload.end
    first, stop = run.history.first_from(overload.begin), run.history.up_to(until)
    usage = run.kv_usage(first, max(first, stop))
    known = usage[usage == usage]
    return float(known.max()) if known.size else math.nan


def _length(overload: Overload, run: RunRecord) -> float:
    return (run.until if overload.end is None else overload.end) - overload.begin


def _open_rate(run: RunRecord, at: float) -> float | None:
    rate = run.rate_at(at)
    return rate if math.isfinite(rate) else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
