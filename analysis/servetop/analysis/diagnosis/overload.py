"""Overloads: episodes that belong together because one limit of the engine caused them, and that limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.kv_need import reserved_request, whole_request
from servetop.analysis.diagnosis.queue_detectors import BATCH_FULL
from servetop.analysis.diagnosis.signals import LEAST_FULL
from servetop.analysis.diagnosis.trailing import last_known, on_next_page, ticks_of, trailing_sum
from servetop.analysis.engine_gauges import KV_FULL, KV_ROOMY, kv_usages
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.interfaces.run_source import EngineFacts

QUEUES = (EpisodeKind.QUEUE, EpisodeKind.AWAITING)
"""Kinds of episodes in which requests wait."""

CLIENT_SIDE = (EpisodeKind.AWAITING, EpisodeKind.IN_FLIGHT, EpisodeKind.LONG_PROMPTS)
"""Kinds of episodes of an overload that the client sees without the engine's metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """Episodes that overlap or follow each other closely, by their beginning."""

    episodes: tuple[Episode, ...]

    @property
    def begin(self) -> float:
        """The earliest beginning, seconds; of requests that pile up in flight only if nothing else was seen."""
        others = [episode.begin for episode in self.episodes if episode.kind is not EpisodeKind.IN_FLIGHT]
        return min(others or [episode.begin for episode in self.episodes])

    @property
    def onset(self) -> float:
        """The beginning of the first queue that lasts, else of the longest one; of everything, without a queue."""
        queues = [each for each in self.episodes if each.kind in QUEUES]
        lasting = [each for each in queues if each.seconds(math.inf) >= _LASTING]
        if lasting:
            return lasting[0].begin
        return max(queues, key=lambda each: each.seconds(math.inf)).begin if queues else self.begin

    @property
    def end(self) -> float | None:
        """The latest end, seconds; None while one lasts."""
        ends = [episode.end for episode in self.episodes]
        return None if None in ends else max(end for end in ends if end is not None)

    @property
    def seen_until(self) -> float:
        """The latest time at which one of them was seen: an end that is not confirmed may have been before."""
        return max(each.seen_until if each.end is None else each.end for each in self.episodes)

    def first(self, kind: EpisodeKind) -> Episode | None:
        """Return the first episode of a kind; None if there is none."""
        return next((episode for episode in self.episodes if episode.kind is kind), None)

    def total(self, kind: EpisodeKind) -> float:
        """Return the sum of the totals of a kind."""
        return sum(episode.total for episode in self.episodes if episode.kind is kind)

    def seconds(self, kind: EpisodeKind, until: float) -> float:
        """Return the sum of the lengths of a kind, in seconds."""
        return sum(episode.seconds(until) for episode in self.episodes if episode.kind is kind)

    def worst(self, kind: EpisodeKind) -> Episode | None:
        """Return the episode of a kind with the worst value; None if there is none."""
        of_kind = [episode for episode in self.episodes if episode.kind is kind]
        return max(of_kind, key=lambda episode: episode.worst, default=None)


OVERLOAD = (
    EpisodeKind.KV,
    EpisodeKind.PREEMPTIONS,
    EpisodeKind.BATCH,
    *QUEUES,
    EpisodeKind.IN_FLIGHT,
    EpisodeKind.LONG_PROMPTS,
)
_LASTING = 5.0
"""Seconds from which a queue is more than a random burst."""
_JOINED_WITHIN = 10.0
"""Seconds between two episodes of one overload."""
_LONG_WITHIN = 20.0
"""Seconds after the beginning of a queue within which long prompts explain it."""
_FASTER = 1.3
"""Up to this multiple of the earlier rate of requests, long prompts explain an overload."""
_SIGNIFICANT = 3.0
"""Standard errors by which requests come faster than before; fewer may be random arrivals."""
COMPARED = 60.0
"""Seconds before and after the first long prompt whose rates of requests are compared."""
_NAMED_WITHIN = 60
"""Seconds after the first detection in which an overload gets its limit."""
_BATCH_SHARE = 0.5
"""Minimum fraction of the time with waiting requests for which the batch must be full, to be their limit."""
_KV_SHARE = 2 / 3
"""The same for the KV cache, which is also full for a part of the time if requests wait for a slow prefill."""
_FREE_SHARE = 0.5
"""Minimum fraction of that time with free KV blocks and batch slots, to say that neither is the limit."""


class Limit(StrEnum):
    """What the engine ran out of."""

    KV = "KV-bound"
    BATCH = "batch-bound"
    RATE = "rate above capacity"
    LONG_PROMPTS = "long prompts"
    UNKNOWN = "overloaded"
    """Too little is exported to tell."""


def overloads(episodes: Sequence[Episode]) -> list[Overload]:
    """Group the episodes of full caches and batches, preemptions and queues, in order of time."""
    groups: list[list[Episode]] = []
    until = -math.inf
    for episode in sorted(episodes, key=lambda each: each.begin):
        if episode.kind not in OVERLOAD:
            continue
        if not groups or episode.begin > until + _JOINED_WITHIN:
            groups.append([])
            until = -math.inf
        groups[-1].append(episode)
        until = max(until, math.inf if episode.end is None else episode.end)
    return [Overload(episodes=tuple(group)) for group in groups]


def limit_of(
    overload: Overload, run: TickHistory, facts: EngineFacts | None, *, until: float, since: float = -math.inf
) -> Limit:
    """Return the limit that kept requests waiting for most of the time of an overload, as known at `until` seconds.

    `since`: only the time from then on counts, unless nothing waited in it.
    """
    if long_prompts_came(overload, run, until):
        return Limit.LONG_PROMPTS
    full_kv = overload.first(EpisodeKind.KV) or overload.first(EpisodeKind.PREEMPTIONS)
    batch = full_batch(overload, run, until)
    if not any(overload.first(kind) for kind in (*QUEUES, EpisodeKind.IN_FLIGHT)):  # a closed loop, or its beginning
        if full_kv is None:
            return Limit.LONG_PROMPTS if batch is None else Limit.BATCH
        return Limit.KV if _holds_closed_loop(overload, run, facts, until) else Limit.UNKNOWN
    waited = _waiting_ticks(overload, run, facts, until, since)
    if not waited.total and since > overload.begin:
        return limit_of(overload, run, facts, until=until)
    if full_kv is not None and waited.at_full_kv >= max(waited.at_full_batch, _KV_SHARE * waited.total):
        return Limit.KV
    if batch is not None and waited.at_full_batch >= _BATCH_SHARE * waited.total:
        return Limit.BATCH
    return Limit.RATE if waited.mostly_free and not _may_wait_elsewhere(facts) else Limit.UNKNOWN


def _holds_closed_loop(overload: Overload, run: TickHistory, facts: EngineFacts | None, until: float) -> bool:
    """Whether the KV cache was full for most of the time in which requests of a closed loop waited; True of others.

    In a closed loop no queue grows, and requests that wait for their prefill fill the cache for moments.
    """
    first, stop = run.first_from(overload.begin), run.up_to(until if overload.end is None else min(overload.end, until))
    if not np.isinf(run.column("request_rate", start=first, stop=max(first, stop))).any():
        return True
    waited = _waiting_ticks(overload, run, facts, until)
    return waited.at_full_kv >= _KV_SHARE * waited.total


def has_room(overload: Overload, run: TickHistory, facts: EngineFacts | None, *, until: float) -> bool:
    """Whether KV blocks and batch slots were free for most of the time in which requests waited."""
    return _waiting_ticks(overload, run, facts, until).mostly_free


def _may_wait_elsewhere(facts: EngineFacts | None) -> bool:
    """Whether free blocks and slots do not show why requests wait.

    Those of one replica may be free, of another not; without a count of waiting requests the network or other clients
    may keep them.
    """
    return facts is not None and (len(facts.replica_urls) > 1 or (facts.attached and "waiting" in facts.not_exported))


def limit_at(
    episodes: Sequence[Episode], run: TickHistory, facts: EngineFacts | None, at: float, *, since: float = -math.inf
) -> Limit | None:
    """Return the limit of the overload that lasts at a time, as known then; None without one.

    `since`: only the time from then on counts.
    """
    groups = overloads([episode.as_known_at(at) for episode in episodes if episode.detected_at <= at])
    if not groups or not any(episode.is_active(at) for episode in groups[-1].episodes):
        return None
    return limit_of(groups[-1], run, facts, until=at, since=since)


def named_at(
    episodes: Sequence[Episode], overload: Overload, run: TickHistory, facts: EngineFacts | None
) -> float | None:
    """Return from when on the limit of an overload of a run was known; None if that was only after _NAMED_WITHIN."""
    limit = limit_of(overload, run, facts, until=run.ticks[-1].end)
    detected = sorted(episode.detected_at for episode in overload.episodes)
    times = sorted({*detected, *(detected[0] + second for second in range(1, _NAMED_WITHIN + 1))})
    return next((at for at in times if limit_at(episodes, run, facts, at) is limit), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WaitingTicks:
    """Ticks in which requests waited or piled up in flight, and what was full in them as far as it is exported."""

    total: int
    at_full_kv: int
    """With a full cache or preemptions."""
    at_full_batch: int
    at_free: int
    """With free KV blocks and batch slots."""
    unseen: int
    """Besides, ticks without a page after one on which requests waited."""

    @property
    def mostly_free(self) -> bool:
        """Whether both were free for most of the time, as far as pages show it."""
        return self.at_free >= max(_FREE_SHARE * (self.total + self.unseen), 1)


def _waiting_ticks(
    overload: Overload, run: TickHistory, facts: EngineFacts | None, until: float, since: float = -math.inf
) -> _WaitingTicks:
    end = until if overload.end is None else min(overload.end, until)
    start = run.first_from(max(overload.begin, since))
    stop = max(start, run.up_to(end))
    names = ("waiting", "running", "preemptions", "kv_usage", "kv_blocks_used", "scrape_end")
    waiting, running, counted, usage, used, pages = (run.column(name, start=start, stop=stop) for name in names)
    preempted = on_next_page(counted, pages) > 0
    blocks = math.nan if facts is None or not facts.kv_blocks_total else float(facts.kv_blocks_total)
    level = next((each.level for each in overload.episodes if each.kind is EpisodeKind.KV), KV_FULL)
    level = min(level, max(1 - reserved_request(run, facts, start, stop), LEAST_FULL))
    unseen = np.isnan(waiting) & (last_known(waiting) > 0)
    waits = (waiting > 0) | (unseen & preempted)
    if overload.first(EpisodeKind.QUEUE) is None and not waits.any():
        waits = np.ones(waiting.shape, dtype=np.bool_)
    kv = kv_usages(usage, used, np.full(used.shape, blocks))
    full = (kv >= level) | preempted | (trailing_sum(counted, ticks_of(2)) > 0)
    slots = BATCH_FULL * _batch_size(overload, run, stop)
    fits = min(KV_ROOMY if np.isnan(waiting).all() else level, max(1 - whole_request(run, facts, stop), LEAST_FULL))
    roomy = kv < fits  # what a prompt needs shows while others wait
    free = roomy & ~preempted & (running < slots)
    counts = (waits, waits & full, waits & (running >= slots), waits & free, unseen & ~waits)
    total, at_full_kv, at_full_batch, at_free, hidden = (int(each.sum()) for each in counts)
    return _WaitingTicks(
        total=total, at_full_kv=at_full_kv, at_full_batch=at_full_batch, at_free=at_free, unseen=hidden
    )


def full_batch(overload: Overload, run: TickHistory, until: float) -> Episode | None:
    """Return the first episode of a full batch; one with an inferred limit only if no more sequences ever ran."""
    most = float(np.nanmax(run.column("running", stop=run.up_to(until)), initial=-math.inf))
    found = (each for each in overload.episodes if each.kind is EpisodeKind.BATCH)
    return next((each for each in found if not each.inferred or most * BATCH_FULL <= each.batch), None)


def _batch_size(overload: Overload, run: TickHistory, stop: int) -> float:
    """Return the batch size during an overload; if it is not exported, the most sequences that ran so far."""
    sizes = (each.batch for each in overload.episodes if not each.inferred)
    size = next((each for each in sizes if not math.isnan(each)), math.nan)
    return float(np.nanmax(run.column("running", stop=stop), initial=-math.inf)) if math.isnan(size) else size


def long_prompts_came(overload: Overload, run: TickHistory, until: float) -> bool:
    """Whether longer prompts came at the beginning of an overload although requests did not come faster."""
    long = overload.first(EpisodeKind.LONG_PROMPTS)
    if long is None or long.begin > overload.onset + _LONG_WITHIN:
        return False
    counts = [
        _due(run, start, end)
        for start, end in ((long.begin - COMPARED, long.begin), (long.begin, min(long.begin + COMPARED, until)))
    ]
    if not all(count.size for count in counts):
        return True
    before, during = (float(count.mean()) for count in counts)
    errors = math.sqrt(before / counts[0].size + during / counts[1].size)
    return not (during > _FASTER * before and during - before > _SIGNIFICANT * errors)


def _due(run: TickHistory, start: float, until: float) -> FloatArray:
    """Return the requests due in each tick of a period, from the first one on."""
    due = run.column("due", start=run.first_from(start), stop=max(run.first_from(start), run.up_to(until)))
    return due[int((due > 0).argmax()) :] if due.any() else due[:0]
