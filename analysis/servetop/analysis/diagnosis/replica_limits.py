"""What limits each of several replicas: the limit of all together hides that one is full and another idle."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.evidence import knows_every_replica
from servetop.analysis.diagnosis.overload import Limit, Overload, full_batch, limit_of, overloads
from servetop.analysis.diagnosis.passing_overload import shows_limit
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.engine_gauges import STALE_AFTER, kv_usage
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import EngineSample, ReplicaSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import Tick

_ENGINE_SIDE = (EpisodeKind.KV, EpisodeKind.PREEMPTIONS, EpisodeKind.BATCH, EpisodeKind.QUEUE)
"""Kinds of episodes that a replica shows by itself; the client's figures are those of all replicas together."""
_LOOKBACK = 150.0
"""Seconds before an overload that its rules look back to."""
_SHORTEST = 5.0
"""Seconds of waiting from which a replica counts as limited, or _SHARE of the overload if that is less."""
_SHARE = 0.5
_FAR_MORE = 1.5
"""Requests at a replica without metrics relative to those at another, from which it is more loaded."""
_FIELDS = tuple(each.name for each in dataclasses.fields(EngineSample))


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedReplica:
    """A replica at which requests waited during an overload."""

    number: int
    """From 0, as in the recording."""
    limit: Limit
    seconds: float
    """How long its own overload lasted."""
    batch: float = math.nan
    """The size of its full batch; NaN if that was not the limit, or is unknown."""
    inferred: bool = False
    """Whether `batch` is the number of sequences that ran while others waited."""
    full_since: float = math.nan
    """When that batch was full first, seconds of the run; NaN if it was not the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLimits:
    """The replicas of an overload, by their own metrics."""

    count: int
    limited: tuple[LimitedReplica, ...]
    """Those at which requests waited, the one with the longest overload first; empty if that is unknown."""
    most_waiting: tuple[float, ...]
    """The longest queue of each replica; NaN where it is not exported."""
    kv_peaks: tuple[float, ...]
    """The highest KV usage of each replica, 0..1; NaN where it is not exported."""

    @property
    def uneven(self) -> bool:
        """Whether only some replicas are limited."""
        return 0 < len(self.limited) < self.count

    @property
    def limit(self) -> Limit | None:
        """The limit of the replica with the longest overload; None without one."""
        return self.limited[0].limit if self.limited else None


def replica_limits(run: RunRecord, main: Overload) -> ReplicaLimits | None:
    """Judge each replica during an overload; None for a single server, or if one of the replicas has no metrics."""
    facts = run.header.engine
    if facts is None or len(facts.replica_urls) < 2 or not knows_every_replica(run):
        return None
    until = run.until if main.end is None else main.end
    first, stop = run.history.first_from(main.begin - _LOOKBACK), run.history.up_to(until)
    ticks = run.history.ticks[first : max(first, stop)]
    limited, waiting, peaks = [], [], []
    for number in range(len(facts.replica_urls)):
        history = TickHistory(ticks_of_replica(ticks, run.replica_samples, number))
        during = history.first_from(main.begin)
        waiting.append(_most(history, "waiting", during))
        peaks.append(_kv_peak(history, during))
        found = _judged(run, history, _facts_alone(facts, history), main, until=until, number=number)
        limited += [] if found is None else [found]
    limited.sort(key=lambda each: -each.seconds)
    if any(map(math.isnan, waiting)) and len(limited) < len(waiting):  # requests may wait at the others
        limited = []
    return ReplicaLimits(
        count=len(facts.replica_urls), limited=tuple(limited), most_waiting=tuple(waiting), kv_peaks=tuple(peaks)
    )


def limit_is_elsewhere(run: RunRecord, main: Overload) -> bool:
    """Whether the limit of some replicas says little of an overload, because others have no metrics.

    Those hold far more requests each, or the limit is seen for less than half of the overload.
    """
    facts = run.header.engine
    if facts is None or knows_every_replica(run):
        return False
    if not shows_limit(run, main):
        return True
    start = run.history.first_from(main.begin)
    stop = run.history.up_to(run.until if main.end is None else main.end)
    names = ("in_flight", "running", "waiting")
    flying, running, waiting = (run.history.column(name, start=start, stop=max(start, stop)) for name in names)
    inside = running + np.nan_to_num(waiting)
    known = ~np.isnan(inside)
    seen = len({each.replica for each in run.replica_samples})
    return holds_more(float(flying[known].sum()), float(inside[known].sum()), seen=seen, count=len(facts.replica_urls))


def holds_more(in_flight: float, inside: float, *, seen: int, count: int) -> bool:
    """Whether the unseen ones of `count` replicas hold far more requests each than the `seen` ones, `inside` in all."""
    return 0 < seen < count and (in_flight - inside) / (count - seen) > _FAR_MORE * inside / seen


def ticks_of_replica(ticks: Sequence[Tick], samples: Sequence[ReplicaSample], number: int) -> list[Tick]:
    """Return ticks with the newest sample of one replica in place of that of all; None where it did not answer."""
    own = [each for each in samples if each.replica == number]
    alone = [EngineSample(**{name: getattr(each, name) for name in _FIELDS}) for each in own]
    ends = np.array([each.scrape_end for each in own], dtype=np.float64)
    positions = np.searchsorted(ends, [tick.end + 1e-9 for tick in ticks], side="right") - 1
    return [
        dataclasses.replace(tick, engine=_if_new(alone[position] if position >= 0 else None, tick))
        for tick, position in zip(ticks, positions.tolist(), strict=True)
    ]


def _if_new(sample: EngineSample | None, tick: Tick) -> EngineSample | None:
    old = sample is None or tick.engine is None or tick.end - sample.scrape_end > max(STALE_AFTER, _age(tick))
    return None if old else sample


def _age(tick: Tick) -> float:
    """Return twice the age of the newest sample, in seconds: a slow scrape interval outdates no replica."""
    return math.inf if tick.engine is None else 2 * (tick.end - tick.engine.scrape_start)


def _facts_alone(facts: EngineFacts, history: TickHistory) -> EngineFacts:
    """Return the facts of one replica; its KV blocks are those that it exports, or unknown."""
    blocks = [each.engine.kv_blocks_total for each in history.ticks[-1:] if each.engine is not None]
    total = next((round(each) for each in blocks if each is not None), None)
    return dataclasses.replace(facts, replica_urls=(), kv_blocks_total=total)


def _judged(
    run: RunRecord, history: TickHistory, facts: EngineFacts, main: Overload, *, until: float, number: int
) -> LimitedReplica | None:
    """Judge one replica; None if no request waited long enough there."""
    fold = EpisodeFold(streamed=run.header.config.workload.stream)
    fold.update(history, facts, stages=run.stages)
    own: list[Episode] = [each for each in fold.episodes if each.kind in _ENGINE_SIDE]
    during = [each for each in overloads(own) if each.begin < until and (each.end is None or each.end > main.begin)]
    if not during:
        return None
    longest = max(during, key=lambda each: _seconds(each, until))
    seconds = _seconds(longest, until)
    if seconds < min(_SHORTEST, _SHARE * (until - main.begin)):
        return None
    limit, full = limit_of(longest, history, facts, until=until), full_batch(longest, history, until)
    size = full if limit is Limit.BATCH else None
    return LimitedReplica(
        number=number,
        limit=limit,
        seconds=seconds,
        batch=math.nan if size is None else size.batch,
        inferred=size is not None and size.inferred,
        full_since=math.nan if size is None else size.begin,
    )


def _seconds(overload: Overload, until: float) -> float:
    return (until if overload.end is None else overload.end) - overload.begin


def _most(history: TickHistory, column: str, first: int) -> float:
    values = history.column(column, start=first)
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else math.nan


def _kv_peak(history: TickHistory, first: int) -> float:
    usages = [kv_usage(tick.engine) for tick in history.ticks[first:]]
    return max((each for each in usages if not math.isnan(each)), default=math.nan)
